"""The speech part alone: `python -m benchmarks.applications.speech`.

`--decode` only speaks and decodes; `--decoded` measures on the utterances that are decoded so far.
"""

from __future__ import annotations

from benchmarks.applications import speech
from benchmarks.applications.speech import decode, texts
from benchmarks.common import finish, parser


def main() -> None:
    """Run the speech part, or only decode."""
    command = parser("topics in speech recognition: word error rates")
    command.add_argument("--decode", action="store_true", help="speak and decode, and measure nothing")
    command.add_argument("--decoded", action="store_true", help="measure on what is decoded so far")
    given = command.parse_args()
    if given.decode:
        tuning, test = texts.utterances(*speech.NUMBERS[given.quick])
        decode.decode([*tuning, *test], decode.decoders())
    else:
        finish({"benchmark": "speech", **speech.run(given.quick, only_decoded=given.decoded)})


if __name__ == "__main__":
    main()
