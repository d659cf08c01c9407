"""The base of all kernels: compiling, threads, random numbers, vector code, tables, checks."""
