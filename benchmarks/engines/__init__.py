"""What carries a federation: the same models on every engine, rates, bytes, crashes."""
