"""A party of a federation: its directory, its approvals, its answers, and the models that it receives."""
