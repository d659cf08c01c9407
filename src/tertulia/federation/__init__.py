"""How parties and a server talk: the handle, the engines, and what survives a crash."""
