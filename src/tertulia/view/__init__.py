"""Output for people: console, tables, plots, HTML pages, and monitors of runs."""
