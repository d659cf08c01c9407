"""What earlier versions wrote: recognised, carried over with a backup beside it, and brought back on request."""
