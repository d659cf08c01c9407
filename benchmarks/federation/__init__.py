"""What federating is worth."""
