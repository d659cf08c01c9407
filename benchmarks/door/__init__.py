"""A party's door: attacks, fuzzing, audits, and what they cost."""
