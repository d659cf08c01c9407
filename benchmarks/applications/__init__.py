"""The papers' applications: speech, classification, spam, sentiment."""
