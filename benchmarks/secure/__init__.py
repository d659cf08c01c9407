"""Secure sums: their cost beside plain sums, exactness, repair of dropouts, words of one party alone, crashes."""
