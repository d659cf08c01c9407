"""Coherence measures against gensim's."""
