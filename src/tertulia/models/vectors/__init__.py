"""Vectors of words and documents, and topics that are clusters of these."""
