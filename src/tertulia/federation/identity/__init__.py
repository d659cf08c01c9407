"""Identities in a network of organisations: keys, certificates, invitations and the register of members.

Nothing here opens a connection. A party makes its key itself, and the key never leaves the party; only a request for a
certificate travels, signed with the key.
"""
