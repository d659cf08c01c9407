"""A federation that NVIDIA FLARE carries: what its jobs name at the server and at a site, and the operator's side.

A job holds the names of two classes, a roster and a run. The `local` folder of each kit says where the federation or
the party is. Approvals stay at the parties: who has not approved a run refuses what it asks.
"""
