"""What several methods share: agreeing on words, scoring, the result."""
