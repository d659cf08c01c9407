"""EmbeddingTopics: clusters of document vectors by federated sums, private for whole documents if asked."""
