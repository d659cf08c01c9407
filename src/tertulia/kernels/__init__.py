"""Numba kernels on plain arrays: samplers, fold-in, priors and their random numbers. Arrays in, arrays out, no I/O.

The front doors are `lda` (training) and `foldin` (theta of unseen documents); importing this package alone is free.
"""
