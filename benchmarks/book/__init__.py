"""The book: every figure and table of the five papers, measured, drawn and judged from stored numbers."""
