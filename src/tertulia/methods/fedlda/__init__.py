"""FedLDA: topics from users who trust nobody."""
