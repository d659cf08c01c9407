"""`tertulia privacy` listed what is derived at epsilon 0, had no total per party, and never said "vacuous"."""

import json

import pytest

import tertulia as tt
from helpers.texts import PUBLIC, mixed
from tertulia.runs.directory import Run
from tertulia.view.tables import privacy_rows
from tertulia.view.verdicts import LINES, WIDTH, summaries, verdict

PARTIES = {"north": mixed(1, 12), "south": mixed(2, 12)}
SMALL = {"topics": 2, "rounds": 2, "sweeps": 2}
OPEN = {"max_share": 1.0}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sound") / "run"
    tt.FTM(**SMALL, mode="sound", epsilon=8.0, model="sentence", vocabulary=PUBLIC).fit(PARTIES, directory=directory)
    return directory


@pytest.fixture(scope="module")
def clear(tmp_path_factory):
    directory = tmp_path_factory.mktemp("clear") / "run"
    tt.FTM(**SMALL, vocabulary=OPEN).fit(PARTIES, directory=directory)
    return directory


def test_derived_things_cost_as_their_sources(sound):
    rows = {row["what"]: row for row in privacy_rows(Run.open(sound), 1e-6) if row["party"] == "north"}
    assert rows["topic-word distributions"]["real epsilon"] == "8"
    assert rows["topic-word distributions"]["unit"] == "token"
    assert "where sentences end is public" in rows["topic-word distributions"]["remarks"]


def test_a_page_says_in_a_sentence_what_holds_then_the_totals(tertulia, sound):
    code, out, _ = tertulia("privacy", sound, "--delta", "1e-6")
    assert code == 0
    page = out.split('What left "south"')[0].rstrip().splitlines()
    assert len(page) <= LINES
    assert max(map(len, page)) <= WIDTH
    text = " ".join(" ".join(page).split())
    assert "PROTECTED, WEAKLY. A single word can be denied (epsilon 8, delta 1e-06)." in text
    assert "A whole document of 17 words cannot (epsilon 1" in text
    assert "one word epsilon 8, delta 1e-06" in text
    assert "longest document (17 words)" in text
    assert "Refused: nothing." in text
    assert "Rare words that left: none" in text
    for assumed in ("lengths of documents", "number of documents", "where sentences end"):
        assert assumed in text.split("Taken for public:")[1]


def test_all_lists_every_release(tertulia, sound):
    out = tertulia("privacy", sound, "--all")[1]
    assert "Every release" in out
    assert "Every release" not in tertulia("privacy", sound)[1]


def test_a_clear_run_is_not_protected_and_names_how_many_rare_words_left(tertulia, clear):
    page = summaries(Run.open(clear), 1e-6)[0]
    assert page.verdict.startswith("NOT PROTECTED")
    assert page.rare_words.startswith("Rare words that left: 0 of 10 are in fewer than 5 documents")
    assert len(page.lines("run")) <= LINES
    facts = json.loads(tertulia("privacy", clear, "--json")[1])["verdicts"]
    assert [row["party"] for row in facts] == ["north", "south"]


def test_refusals_are_reported(tmp_path):
    from tertulia.errors import TertuliaError

    (tmp_path / "policy.toml").write_text("allow_metrics = false\n")
    with pytest.raises(TertuliaError):
        tt.FTM(**SMALL, vocabulary=OPEN).fit(
            PARTIES, directory=tmp_path / "run", heldout=0.3,
            party_settings={name: {"policy": str(tmp_path / "policy.toml")} for name in PARTIES},
        )  # fmt: skip
    assert summaries(Run.open(tmp_path / "run"), 1e-6)[0].refused == "Refused: 1 by allow_metrics."


def test_vacuous_is_computed(tmp_path):
    tt.PCTD(topics=2, rounds=1, mode="paper", sigma=1.0, vocabulary=PUBLIC, evaluate=False).fit(
        PARTIES, directory=tmp_path / "run"
    )
    run = Run.open(tmp_path / "run")
    remarks = {row["what"]: row["remarks"] for row in privacy_rows(run, 0.01)}
    assert "delta >= 1/" in remarks["noisy counts of words in units"]  # there are two hundred words
    assert (
        "delta >= 1/"
        not in {row["what"]: row["remarks"] for row in privacy_rows(run, 1e-6)}["noisy counts of words in units"]
    )
    assert summaries(run, 0.01)[0].verdict.startswith("PROTECTED IN NAME ONLY: delta >= 1/")


@pytest.mark.parametrize(
    ("word", "document", "says"),
    [("0", "0", "NOTHING LEFT"), ("1", "2.5", "PROTECTED. A whole"), ("8", "504", "PROTECTED, WEAKLY. A single word"),
     ("1", "9", "PROTECTED, WEAKLY. A whole"),
     ("30", "900", "HARDLY"), ("infinite (non-private)", "infinite (non-private)", "NOT PROTECTED")],
)  # fmt: skip
def test_verdicts(word, document, says):
    rows = [("token", 1, word), ("document", 63, document)]
    common = {"adjacency": "substitute", "delta": 1e-6}
    assert verdict([{"unit": u, "words": n, "real epsilon": e, **common} for u, n, e in rows]).startswith(says)
