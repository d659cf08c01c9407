"""Sources of documents, the Pythons that the package runs on, seeded topics, numbers of topics."""
