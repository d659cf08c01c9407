"""A party answers with bytes that are none, or with answers that cannot be: it loses its place, the others go on."""

import numpy as np
import pytest

from helpers import toys
from helpers.attacks_hostile import Parties, honest, sends, server
from tertulia.errors import PartyFailure
from tertulia.federation.codec import encode
from tertulia.federation.messages import LEDGER_DIGEST, Answer, Inquiry
from tertulia.federation.packing import Base, pack
from tertulia.federation.server.inquiries import inquire
from tertulia.federation.server.journal import Journal
from tertulia.federation.types import Nothing

ENDLESS = b'{"0":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":[0,4611686018427387904]}}'
MALFORMED = {
    "bytes": b"any bytes",
    "nothing": b"",
    "half": encode(Answer("ok", "", Nothing()))[:40],
    "a dict": encode({"a": 1}),
    "no such kind": encode(Answer("fine", "", Nothing())),
    "ok without reply": encode(Answer("ok", "", None)),
    "a reply that is none": encode(Answer("ok", "", {"value": 1})),
    "another reply": encode(Answer("ok", "", Answer("ok", "", None))),
    "a field that is none": encode(Answer("ok", "", toys.Weighted("word", np.array(1.0)))),
    "other fields": encode(Answer("ok", "", toys.Number(np.ones(1)))),
    "fields missing": encode(Answer("ok", "", toys.Weighted(np.ones(1), np.array(1.0)))).replace(b"weight", b"weighs"),
    "a header of 2^62": (2**62).to_bytes(8, "little") + b"{}",
    "an array of 2^62": (len(ENDLESS)).to_bytes(8, "little") + ENDLESS,
    "packed bytes that claim 2^40": b"\xfftertul1" + bytes(32) + (2**40).to_bytes(8, "little") + bytes(9000),
    "packed bytes that are none": pack(encode(np.arange(9000)))[:-40],
    "differences from nothing": pack(encode(np.arange(9000) % 7919), Base.of(encode(np.arange(9000) % 7919))),
    "another packed message": pack(encode({"a": np.arange(9000)})),
    "deep": encode({"x": 1}).replace(b'{\\"dict\\":{\\"x\\":1}}', b"[" * 18),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("verb", ["mean", "sum"])
def test_others_go_on(name, verb, tmp_path):
    fed, warnings = server(tmp_path, a=honest(3.0), b=lambda frame: MALFORMED[name], c=honest(3.0))
    total = getattr(fed, verb)(toys.weigh, Nothing())
    assert float(total.value[0]) == (1.5 if verb == "mean" else 6.0)
    assert fed.answered == ["a", "c"]
    assert any("party 'b' did not answer" in text for text in warnings)
    fed.commit(Nothing())  # a flush survives it, too


@pytest.mark.parametrize("name", ["bytes", "ok without reply"])
def test_by_the_rules_a_run_may_stop_with_a_reason(name, tmp_path):
    fed, _ = server(tmp_path, "stop", a=honest(), b=lambda frame: MALFORMED[name])
    with pytest.raises(PartyFailure, match="party 'b': its "):
        fed.each(toys.weigh, Nothing())


def test_a_durable_commit_survives_malformed_flushes(tmp_path):
    answers = iter([honest()])
    fed, _ = server(tmp_path, a=honest(), b=lambda frame: next(answers, lambda frame: b"any bytes")(frame))
    fed.each(toys.weigh, Nothing())
    fed.commit(Nothing(), durable=5)
    fed.flush()
    assert Journal(tmp_path, durable=False).last()[0].round == 1


def test_behind_for_ever_costs_a_party_its_place(tmp_path):
    behind = encode(Answer("behind", "", None))
    fed, warnings = server(tmp_path, a=honest(), b=lambda frame: behind, c=honest())
    for _ in range(8):
        assert list(fed.each(toys.weigh, Nothing())) == ["a", "c"]
        fed.commit(Nothing())
    assert len([text for text in warnings if "goes on without it" in text]) == 1
    assert len([text for text in warnings if "has lost its state" in text]) == 4  # then it is not asked any more


def test_inquiries_leave_out_who_answers_nonsense():
    transport = Parties(a=sends("digest"), b=lambda frame: b"x", c=lambda frame: encode({"a": 1}))
    warnings = []
    assert inquire(transport, Inquiry("run", LEDGER_DIGEST), None, warnings.append) == {"a": "digest"}
    assert len(warnings) == 2
