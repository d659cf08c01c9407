"""The server of a federation: its directory, the registry of its runs, and the process that serves them."""
