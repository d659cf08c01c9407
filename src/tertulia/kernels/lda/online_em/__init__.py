"""One epoch of online EM: the warm start of LDA."""
