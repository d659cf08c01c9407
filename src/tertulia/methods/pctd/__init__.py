"""PC-TD: private and consistent topic discovery."""
