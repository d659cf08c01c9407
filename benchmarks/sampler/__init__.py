"""The trainer of one machine against its peers."""
