"""Running the software: doctor, health, status, progress, upgrades."""
