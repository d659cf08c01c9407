"""N-best lists of every decoder, and errors about broken ones."""

import math
import re

import pytest

from tertulia.applications.speech.nbest import Hypothesis, Utterance, read_json, read_nbest, write_nbest
from tertulia.errors import FormatError, InputError


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_json_round_trip(tmp_path):
    several = [
        Utterance("a-1", (Hypothesis(("buy", "gold"), -3.5, (-1.0, -2.0, -0.25)), Hypothesis((), -9.0)), "a", ("buy",)),
        Utterance("b", (Hypothesis(("naïve",), -1.0, (-2.0,)),)),
    ]
    assert read_nbest(write_nbest(tmp_path / "lists.jsonl", several)) == several
    assert read_nbest(write_nbest(tmp_path / "one.jsonl", several[:1])) == several[:1]  # also a whole JSON document


def test_whisper_segments(tmp_path):
    path = tmp_path / "call.json"
    path.write_text(
        '{"text": "buy gold now", "segments": [{"id": 0, "text": " buy gold", "tokens": [5, 6], "avg_logprob": -0.5},\n'
        '{"id": 1, "hypotheses": [{"text": "now", "score": -1.5, "lm": -4}, {"text": "no", "score": -2}]}]}'
    )
    first, second = read_nbest(path)
    assert (first.id, first.document, first.hypotheses) == ("call-0", "call", (Hypothesis(("buy", "gold"), -1.0),))
    assert second.hypotheses == (Hypothesis(("now",), -1.5, (-4.0,)), Hypothesis(("no",), -2.0))


def test_kaldi(tmp_path):
    write(tmp_path, text="c-7-1 buy gold\nc-7-2 by\nd-1\n", ac_cost="c-7-1 10.5\nc-7-2 11\nd-1 3\n")
    write(tmp_path, lm_cost="c-7-1 6\nc-7-2 4\nd-1 1\n")
    first, second = read_nbest(tmp_path, documents=lambda name: name[0])
    assert (first.id, first.document) == ("c-7", "c")
    assert first.hypotheses == (Hypothesis(("buy", "gold"), -10.5, (-3.0, -3.0)), Hypothesis(("by",), -11.0, (-4.0,)))
    assert second.hypotheses == (Hypothesis((), -3.0, (-1.0,)),)


def test_espnet(tmp_path):
    write(tmp_path, **{"1best_recog__text": "u buy gold\n", "1best_recog__score": "u tensor(-1.5)\n"})
    write(tmp_path, **{"2best_recog__text": "u by gold\n", "2best_recog__score": "u -2.5\n"})
    (found,) = read_nbest(tmp_path)
    assert [(" ".join(h.words), h.acoustic) for h in found.hypotheses] == [("buy gold", -1.5), ("by gold", -2.5)]


def test_pocketsphinx(tmp_path):
    (tmp_path / "u.hyp").write_text("buy gold -10000\nbuy gold -10001\nby -20000\n")
    (found,) = read_nbest(tmp_path)
    assert [h.words for h in found.hypotheses] == [("buy", "gold"), ("by",)]
    assert found.hypotheses[1].acoustic == pytest.approx(-20000 * math.log(1.0001))


@pytest.mark.parametrize(
    ("files", "where", "remedy"),
    [
        ({"text": "u-1 a\nu b\n", "ac_cost": "u-1 1\n"}, "text, line 2", "UTTERANCE-RANK"),
        ({"text": "u-1 a\n", "ac_cost": "u-1 1\nu-1 2\n"}, "ac_cost, line 2", "remove one"),
        ({"text": "u-1 a\n", "ac_cost": "\nu-1 loud\n"}, "ac_cost, line 2", "its score"),
        ({"text": "u-1 a\n", "ac_cost": "u-1 inf\n"}, "ac_cost, line 1", "finite"),
        ({"1best_recog__text": "u a\n", "1best_recog__score": "u x\n"}, "score, line 1", "not a number"),
        ({"u.hyp": "buy -10\nbuy gold\n"}, "u.hyp, line 2", "whole number"),
    ],
)
def test_a_broken_file_is_named_by_its_line(tmp_path, files, where, remedy):
    write(tmp_path, **files)
    with pytest.raises(FormatError, match=f"{re.escape(where)}.*{remedy}"):
        read_nbest(tmp_path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id": "b", "hypo', "not JSON"),
        ('{"hypotheses": []}', "'id'"),
        ('{"id": "b"}', "no list 'hypotheses'"),
        ('{"id": "b", "hypotheses": []}', "no hypothesis"),
        ('{"id": "b", "hypotheses": [{"text": "a"}]}', "'acoustic'"),
        ('{"id": "b", "hypotheses": [{"text": "a", "acoustic": "loud"}]}', "numbers"),
        ('{"id": "b", "hypotheses": [{"text": "a", "acoustic": -1, "lm": [-1, -2, -3]}]}', "3 language-model scores"),
        ('{"id": "b", "hypotheses": [{"text": "a", "acoustic": NaN}]}', "finite"),
    ],
)
def test_a_broken_line_of_json_is_named(tmp_path, line, why):
    path = tmp_path / "lists.jsonl"
    path.write_text(f'{{"id": "a", "hypotheses": [{{"text": "a", "acoustic": -1}}]}}\n\n{line}\n')
    with pytest.raises(FormatError, match=rf"lists.jsonl, line 3: .*{why}"):
        read_json(path)


def test_missing_things_are_named(tmp_path):
    with pytest.raises(InputError, match="no n-best lists"):
        read_nbest(tmp_path)
    write(tmp_path, text="u-1 a\nu-2 b\n")
    with pytest.raises(InputError, match="ac_cost is missing"):
        read_nbest(tmp_path)
    write(tmp_path, ac_cost="u-1 1\n")
    with pytest.raises(InputError, match="no score of 'u-2'"):
        read_nbest(tmp_path)
