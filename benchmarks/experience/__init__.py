"""What a new user waits for and meets."""
