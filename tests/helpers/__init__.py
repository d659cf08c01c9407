"""What several tests share: toy methods, planted corpora, exact posteriors, Geweke tests, runs and processes."""
