"""Sources of documents, the Pythons that the package runs on, and seeded topics."""
