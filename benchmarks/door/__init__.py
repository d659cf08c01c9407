"""Whether the door holds: attacks, fuzzing, audits and what all of it costs."""
