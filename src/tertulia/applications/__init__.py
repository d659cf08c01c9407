"""Applications of topic models: classification, speech, comparing parties, choosing the number of topics."""
