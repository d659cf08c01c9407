"""Engines: transports that carry frames between server and parties, in this process or between processes."""
