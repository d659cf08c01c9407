"""Federated Topic Modelling: FTM and iFTM."""
