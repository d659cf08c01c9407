"""What leaves a party, at what price: mechanisms, noise, ledger, accounting and the party's own policy."""
