"""Privacy of what leaves a party: mechanisms, noise, ledger, accounting, and the party's own policy."""
