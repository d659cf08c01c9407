"""Speak and decode all utterances, and nothing else: `python -m benchmarks.applications.speech [tuning test]`."""

import sys

from benchmarks.applications.speech import decode, texts

if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[1:3]] or [240, 1000]
    tuning, test = texts.utterances(*numbers)
    decode.decode([*tuning, *test], decode.decoders())
