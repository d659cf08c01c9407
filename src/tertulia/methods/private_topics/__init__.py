"""PrivateTopics: topics from a few noisy sums, private for whole documents or users."""
