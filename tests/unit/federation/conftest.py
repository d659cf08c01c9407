"""A run whose parties offer the toy methods, for tests of the federation itself."""

import pytest

from tertulia.corpus import Corpus
from tertulia.federation.method_modules import pins_of
from tertulia.federation.party.host import PartyConfig
from tertulia.runs.directory import Run

KEY = "11" * 32


@pytest.fixture
def toy_run(worded):
    """`toy_run(directory)`: parties a, b and c with 3, 5 and 7 documents and a fixed noise key."""

    def make(directory, methods=("helpers.toys",)):
        run = Run(directory, "run", ("a", "b", "c"), {}, pins=pins_of(["helpers.toys"]))
        for i, (party, size) in enumerate(zip(run.parties, (3, 5, 7), strict=True)):
            home = run.party_directory(party)
            PartyConfig(id=party, run="run", seed=5, methods=methods, noise_key=KEY).save(home)
            Corpus.from_texts(worded(i, size)).save(home / "corpus")
        run.save()
        return run

    return make
