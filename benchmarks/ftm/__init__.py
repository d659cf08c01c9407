"""FTM's figures, and what federating is worth."""
