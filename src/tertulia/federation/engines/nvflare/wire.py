"""What both sides of a job agree on: calls are short, however long a step takes."""

NOT_YET = b""  # the answer is not ready: ask again, with an empty frame
WAIT = 5.0  # seconds that a site keeps a call waiting for its answer
SERVER = "server"  # what FLARE calls it
