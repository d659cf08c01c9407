"""Side-by-side runs against peers and the papers' tables: progress on stderr, one JSON object as stdout's last line."""
