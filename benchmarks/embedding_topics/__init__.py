"""Embedding topics against LDA, BERTopic, FASTopic and private k-means, by corpus and epsilon."""
