"""What topic models are for: classification, language models for speech, comparing parties."""
