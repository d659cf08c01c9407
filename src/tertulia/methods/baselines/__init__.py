"""Each party alone, and all documents in one place."""
