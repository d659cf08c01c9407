"""A party's side: its host, what a step sees of it, and its log of answers."""
