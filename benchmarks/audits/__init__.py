"""Audits: attacks on configurations, and replays on neighbours."""
