"""The methods: a package for each, what they share in `common`, and all of them by name in `registry`."""
