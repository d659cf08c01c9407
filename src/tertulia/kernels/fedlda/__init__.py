"""FedLDA's users: their topics, and the tuples that they send."""
