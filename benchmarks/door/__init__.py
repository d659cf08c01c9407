"""Tests of a party's defences: attacks, fuzzing, audits, and their costs."""
