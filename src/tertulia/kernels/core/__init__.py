"""What all kernels stand on: compiling, threads, random numbers, vector code, tables, checks."""
