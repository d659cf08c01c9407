"""Neural topic models: ProdLDA, CombinedTM and ZeroShotTM."""
