"""Coherence measures compared with gensim."""
