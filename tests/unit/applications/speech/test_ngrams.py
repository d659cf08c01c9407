"""N-gram models: Witten-Bell smoothing, and ARPA files."""

import math

import pytest

from tertulia.applications.speech.ngrams import END, START, UNKNOWN, NGrams
from tertulia.errors import FormatError, InputError

TEXTS = [line.split() for line in ("sell the bonds", "buy the bonds", "buy gold", "buy gold now")]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ngrams_add_up_to_one(order):
    model = NGrams.train(TEXTS, order)
    words = [gram[0] for gram in model.probs if len(gram) == 1 and gram != (START,)]
    for history in ((), (START,), (START, "buy"), ("the", "bonds"), ("never", "heard"), ("gold", "the")):
        assert sum(math.exp(model.log_prob(word, history)) for word in words) == pytest.approx(1.0)


def test_witten_bell_by_hand():
    model = NGrams.train([["a", "b"], ["a", "c"]], order=2)
    p_b = 1 / 6 * 6 / 10 + 4 / 10 / 5  # 6 tokens, 4 kinds (a, b, c, end), 5 words with <unk>
    assert model.log_prob("b", ()) == pytest.approx(math.log(p_b))
    assert model.log_prob("b", ("a",)) == pytest.approx(math.log((1 + 2 * p_b) / 4))
    assert model.log_prob("zebra", ("b",)) == pytest.approx(math.log(1 / 2 * 4 / 10 / 5))


def test_arpa_round_trip(tmp_path):
    model = NGrams.train(TEXTS, 3, min_count=2)
    again = NGrams.read(model.write(tmp_path / "lm.arpa"))
    assert again.order == 3
    assert again.probs.keys() == model.probs.keys()
    assert again.backoffs.keys() == model.backoffs.keys()
    for text in (*TEXTS, ["never", "heard"], []):
        assert again.log_probs(text) == pytest.approx(model.log_probs(text), abs=1e-4)
    assert len(model.log_probs([])) == 1
    assert (UNKNOWN,) in model.probs
    assert (END,) in model.probs


def test_kenlm_reads_what_we_write(tmp_path):
    kenlm = pytest.importorskip("kenlm")
    model = NGrams.train(TEXTS, 3)
    theirs = kenlm.Model(str(model.write(tmp_path / "lm.arpa")))
    for text in ("buy the gold", "sell silver now"):
        assert theirs.score(text) * math.log(10) == pytest.approx(sum(model.log_probs(text.split())), abs=1e-4)


def test_broken_arpa_files_are_named(tmp_path):
    path = NGrams.train(TEXTS, 2).write(tmp_path / "lm.arpa")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-3]))
    with pytest.raises(FormatError, match="no whole ARPA file"):
        NGrams.read(path)
    lines[6] = "loud\tbuy"
    path.write_text("\n".join(lines))
    with pytest.raises(FormatError, match=r"lm.arpa, line 7: .*loud"):
        NGrams.read(path)
    with pytest.raises(InputError, match="no word"):
        NGrams.train([[]])
