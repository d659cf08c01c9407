"""How frames of bytes travel between server and parties: in this process, or between processes."""
