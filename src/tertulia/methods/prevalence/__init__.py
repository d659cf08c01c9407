"""Topic prevalence: how much of a shared model's topics each party, or group of parties, has."""
