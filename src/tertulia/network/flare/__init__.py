"""A federation that NVIDIA FLARE carries: the classes that its jobs name, and the operator's side.

A job holds the names of two classes, a roster and a run. The `local` folder of each kit says where the federation or
the party is. Approvals stay at the parties: a party that has not approved a run refuses its questions.
"""
