"""`tertulia audit`: attack one's own configuration on planted documents, and report lower bounds of epsilon."""
