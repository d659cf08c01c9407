"""PC-TD: EM over semantic units, and noise on their words."""
