"""Secure sums: masks that cancel in the total, shares by which dropouts are repaired, and signed lists."""
