"""`python -m tertulia` is the command line."""

from tertulia.cli import main

main()
