"""PC-TD's figures."""
