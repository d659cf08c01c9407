"""Pages: the report of a run, the live page, the explorer of a model; all self-contained, with one style sheet."""
