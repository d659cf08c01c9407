"""Who is who in a network of houses: keys, certificates, invitations and the register of members.

Nothing here opens a connection. A party's key is made at home and never travels; what travels is a request for a
certificate, signed by it.
"""
