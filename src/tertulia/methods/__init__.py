"""One file a paper: each reads like it."""
