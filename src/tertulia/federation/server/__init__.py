"""The server's side: the handle that methods use, its journal, and who takes part."""
