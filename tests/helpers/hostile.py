"""Names and words that a page must show as text: markup, control characters, and ten thousand letters."""

import re

SCRIPT = "<script>document.title='taken'</script>"
IMAGE = "\"><img src=x onerror=document.title='taken'>"
CONTROL = "red\x1b[31m\u202ebackwards\x00"
LONG = "z" * 10_000
NAMES = (SCRIPT, IMAGE, CONTROL, LONG)
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
