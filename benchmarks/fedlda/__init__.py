"""FedLDA's figures."""
