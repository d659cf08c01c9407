"""Parts that several methods share: settings, vocabulary, local LDA, rounds, evaluation."""
