"""What a party answers is decided here, before its documents are touched: run, plan, step, verb, message.

A run is agreed. At its first question a party pins the plan by its hash, and the word list by its fingerprint when it
first sees one; what another plan, or another list, would ask is another run, with a consent of its own. Only steps that
the plan names are run, under the verbs that it names, with the settings that it has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from tertulia._disk import atomic_write
from tertulia.errors import ConfigError, FormatError, PolicyRefusal
from tertulia.federation.messages import Ask, Inquiry, Question, Verb, fingerprint
from tertulia.federation.party.bounds import check_message, parts, word_lists
from tertulia.federation.party.failures import OWN_EPSILON
from tertulia.federation.party.lists import WordStore
from tertulia.federation.plan import KEEPS, Plan
from tertulia.federation.types import Step
from tertulia.privacy.releases import Release

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost

# Constant texts: what the server sent is not sent back.
NO_SUCH_STEP = "this party does not offer the step: its own config lists the methods whose steps it runs"
NO_SUCH_VERB = "a question asks for 'each', 'sum' or 'mean'"
NO_SUCH_RUN = "this party takes no part in this run"
NO_SUCH_PLAN = "this is not the plan that the party has agreed to: another plan is another run"


class Door:
    """One party's decisions about what it is asked."""

    def __init__(self, host: PartyHost) -> None:
        self._host = host
        self._path = host.directory / "agreed.json"
        self._lists = WordStore(host.directory / "words", durable=host.config.durable)

    @property
    def closed(self) -> bool:
        """Whether the parties have several owners, so that all must be agreed."""
        return self._host.config.owners == "several"

    @cached_property
    def plan(self) -> Plan | None:
        """The run as this party agreed to it, if it was asked to."""
        fields = self._host.config.plan
        return None if fields is None else Plan.from_dict(fields)

    @cached_property
    def _agreed(self) -> dict[str, str]:
        """What was pinned before: the hash of the plan, the fingerprint of the words."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise FormatError(f"{self._path} is damaged: restore it from a backup") from error
        return dict(found)

    def _pin(self, **facts: str) -> None:
        agreed = self._agreed | facts
        atomic_write(self._path, json.dumps(agreed).encode(), durable=self._host.config.durable)
        self._agreed.update(facts)

    # --- the envelope ---------------------------------------------------------------------------------------------

    def check_length(self, length: int) -> None:
        """A question that is too long, packed or not, is not even read."""
        if length > self._host.policy.max_question_bytes:
            raise PolicyRefusal("max_question_bytes", f"a question of {length} bytes is too long")

    def check_run(self, asked: Question | Inquiry) -> None:
        """Another run is not this party's, and does not hear which is."""
        if asked.run != self._host.config.run:
            if self.closed:
                raise PolicyRefusal("run", NO_SUCH_RUN)
            raise ConfigError(NO_SUCH_RUN)

    def check_envelope(self, question: Question) -> None:
        """The round, and the plan; the first question's is pinned."""
        round_, most = question.place[0], self._host.policy.max_rounds
        if round_ > most:
            raise PolicyRefusal("max_rounds", f"round {round_} is above this party's {most}")
        self._check_plan(question.plan)

    def _check_plan(self, hash_: str) -> None:
        if not hash_ and not self.closed:  # a server of one owner need not name its plan
            return
        own = None if self.plan is None else self.plan.hash
        if self.closed and own is None:
            raise PolicyRefusal("plan", "this party has agreed to no plan: its party.json has none")
        if own not in (None, hash_) or self._agreed.get("plan", hash_) != hash_:
            raise PolicyRefusal("plan", NO_SUCH_PLAN)
        if "plan" not in self._agreed:
            self._pin(plan=hash_)

    # --- what is asked --------------------------------------------------------------------------------------------

    def admit(self, question: Question) -> tuple[Ask, Step]:
        """The step to run, if what is asked is agreed and well formed."""
        ask = self._lists.complete(question.ask(), question.lists)
        if ask.verb not in get_args(Verb):
            raise FormatError(NO_SUCH_VERB)
        step = self._host.steps.get(ask.step) if isinstance(ask.step, str) else None
        if step is None or not self._is_planned(ask):
            names = ", ".join(self._host.config.methods)
            self._host.notice(f"was asked for {ask.step!r}, which is no step of its plan, nor of its methods {names}")
            raise FormatError(NO_SUCH_STEP)
        check_message(step, ask.message, self._host.policy)
        self._check_settings(ask)
        self._check_own_epsilon(question, ask)
        for words in word_lists(ask.message):
            self._check_words(words)
        self._lists.keep({fingerprint(words): words for words in word_lists(ask.message)} if question.lists else {})
        return ask, step

    def _is_planned(self, ask: Ask) -> bool:
        plan = self.plan
        return plan is None or not plan.steps or (ask.step, ask.verb) in plan.steps

    def _check_settings(self, ask: Ask) -> None:
        """Settings that travel must be those of the plan; a step that lets nothing leave may have others."""
        plan = self.plan
        if plan is None or (ask.step, KEEPS) in plan.steps:
            return
        for part in parts(ask.message):
            if isinstance(part, BaseModel) and not agrees(part.model_dump(mode="json"), plan.settings):
                raise PolicyRefusal("plan", "settings differ from those that the party has agreed to")

    def _check_words(self, words: tuple[str, ...]) -> None:
        """One list per run. Whoever chose lists anew in each question could count any word."""
        if not self.closed:
            return
        found = fingerprint(words)
        given = None if self.plan is None else self.plan.words
        if given not in (None, found) or self._agreed.get("words", found) != found:
            raise PolicyRefusal("words", "this is not the word list of the run, and a run has only one")
        if "words" not in self._agreed:
            self._pin(words=found)

    # --- a party's own epsilon ------------------------------------------------------------------------------------

    def _check_own_epsilon(self, question: Question, ask: Ask) -> None:
        """A party with an epsilon of its own lets nothing be computed without noise, nor more often than planned."""
        plan = self.plan
        if self._host.config.settings.get("epsilon") is None or plan is None or (ask.step, KEEPS) in plan.steps:
            return
        if plan.settings.get("mode") == "clear" or "epsilon" not in plan.settings:
            raise PolicyRefusal(OWN_EPSILON, "the plan would ignore it: use a method with a private mode")
        times = plan.settings.get("rounds")
        if isinstance(times, int):
            releases = self._host.ledger.releases()
            asked = {r.message_hash for r in releases if (r.run, r.step) == (question.run, ask.step)}
            if question.hash not in asked and len(asked) >= times:
                raise PolicyRefusal("rounds", f"{times} rounds are planned, for which its epsilon holds")

    def check_release(self, release: Release) -> None:
        """Nothing leaves by a step that only keeps things, nor without noise where the party has its own epsilon."""
        if self.plan is not None and (release.step, KEEPS) in self.plan.steps:
            raise PolicyRefusal("plan", f"'{release.what}' would leave by a step that the plan lets only keep things")
        own = self._host.config.settings.get("epsilon")
        if self.closed and own is not None and release.non_private and release.claimed is None:
            raise PolicyRefusal(OWN_EPSILON, f"'{release.what}' would leave without noise, beyond {own:g}")


def agrees(part: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether settings that travel say the same as a plan's, as far as both speak of a thing.

    Rounds in which parties start may have their own number of sweeps.

    >>> agrees({"topics": 5, "sweeps": 9}, {"topics": 5, "sweeps": 2, "start_sweeps": 9, "rounds": 3})
    True
    """
    sweeps = [value for name, value in settings.items() if name.endswith("sweeps")]
    return all(
        value in sweeps if name == "sweeps" else value == settings[name]
        for name, value in part.items()
        if name in settings
    )


def policy_path_or_none(directory: Path, home: str | None, owners: str) -> Path | None:
    """Where a party's policy is. Between several owners that in its `home` comes first, wherever a run is."""
    places = [Path(home)] if home is not None and owners == "several" else []
    return next((path for place in (*places, directory) if (path := place / "policy.toml").exists()), None)
