"""The server's side: the handle that methods use, its journal, its inquiries, and the parties of each round."""
