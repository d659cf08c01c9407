"""`python -m tertulia` is the command line."""

from tertulia.cli.main import main

main()
