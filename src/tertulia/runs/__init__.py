"""A run from settings to a saved model: configuration, sources, directory, driver."""
