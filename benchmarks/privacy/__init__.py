"""Quality against real epsilon, of words and of documents."""
