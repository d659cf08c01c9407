"""Organisations that meet over a network: proposals, approvals, runs between several owners."""
