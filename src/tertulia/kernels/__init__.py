"""Numba kernels on plain arrays: samplers, fold-in, priors and their random numbers. Arrays in, arrays out, no I/O.

Training is in `lda`, theta of unseen documents in `lda.fold_in`. Importing this package alone costs nothing.
"""
