"""Admission of questions: a party checks run, plan, step, verb and message before it reads any document.

The parties agree on a run. At the first question a party pins the hash of the plan, and at the first word list the
list's fingerprint. Another plan or another list needs another run, with a new consent. The party runs only the steps
that the plan names, with the plan's verbs and the plan's settings.
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
from tertulia.federation.checks import check_question, parts, word_lists
from tertulia.federation.fields import EPSILON, OneOf, bare, declared
from tertulia.federation.messages import Ask, Frame, Question, Verb, fingerprint
from tertulia.federation.party.failures import OWN_EPSILON
from tertulia.federation.party.release_limits import ReleaseLimits, occasion_of
from tertulia.federation.party.word_store import WordStore
from tertulia.federation.plan import KEEPS, Plan
from tertulia.federation.types import Step
from tertulia.privacy.home import Home
from tertulia.privacy.releases import Release

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost

# Constant texts: an answer never repeats what the server sent.
NO_SUCH_STEP = "this party does not offer the step: its own config lists the methods whose steps it runs"
NO_SUCH_VERB = "a question asks for 'each', 'sum', 'mean' or 'relay'"
NOT_SECURE = "the run has no secure sums, and this party takes part only in runs that have them"
NO_SUCH_RUN = "this party takes no part in this run"
NO_PLAN = "this party has agreed to no plan: its party.json has none"
NO_SUCH_PLAN = "this is not the plan that the party has agreed to: another plan is another run"


class Door:
    """One party's decisions whether to answer a question and to allow a release."""

    def __init__(self, host: PartyHost) -> None:
        self._host = host
        self._path = host.directory / "agreed.json"
        self._lists = WordStore(host.directory / "words", durable=host.config.durable)

    @property
    def closed(self) -> bool:
        """Whether the parties have several owners, so that everything must be agreed."""
        return self._host.config.owners == "several"

    @cached_property
    def plan(self) -> Plan | None:
        """The plan that this party has agreed to, None if it has none."""
        fields = self._host.config.plan
        return None if fields is None else Plan.from_dict(fields)

    @cached_property
    def _agreed(self) -> dict[str, str]:
        """The pinned facts: hash of the plan, fingerprint of the words, name of the home, its last withdrawal."""
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

    @property
    def home(self) -> str | None:
        """The name of the home with which this run began, None before the first answer."""
        return self._agreed.get("home")

    def pin_home(self, home: Home) -> None:
        """Pin the home at the first answer; `open_home` then refuses another one. Pin the last withdrawal, too."""
        if self.home is None:
            self._pin(home=home.identity, withdrawn=str(home.ledger.withdrawals().last))

    @property
    def withdrawn(self) -> int | None:
        """The number of the ledger's last withdrawal when this run began; None before the first answer."""
        return None if self.home is None else int(self._agreed.get("withdrawn", 0))

    # --- the envelope ---------------------------------------------------------------------------------------------

    def check_length(self, length: int) -> None:
        """Refuse a question that is too long, packed or unpacked, before it is decoded."""
        if length > self._host.policy.max_question_bytes:
            raise PolicyRefusal("max_question_bytes", f"a question of {length} bytes is too long")

    def check_run(self, asked: Frame) -> None:
        """Refuse a question of another run, without naming this party's run."""
        if asked.run != self._host.config.run:
            if self.closed:
                raise PolicyRefusal("run", NO_SUCH_RUN)
            raise ConfigError(NO_SUCH_RUN)
        if self.closed and self.plan is None:  # forgotten, left, or never approved
            raise PolicyRefusal("plan", NO_PLAN)

    def check_envelope(self, question: Question) -> None:
        """Check the round and the plan; pin the plan of the first question."""
        round_, most = question.place[0], self._host.policy.max_rounds
        if round_ > most:
            raise PolicyRefusal("max_rounds", f"round {round_} is above this party's {most}")
        self.check_plan(question.plan)

    def check_plan(self, hash_: str) -> None:
        """Refuse another plan than the one that this party has agreed to; pin the first."""
        if self._host.policy.require_secure and (self.plan is None or not self.plan.secure):
            raise PolicyRefusal("require_secure", NOT_SECURE)
        if not hash_ and not self.closed:  # in a simulation the server need not name its plan
            return
        own = None if self.plan is None else self.plan.hash
        if self.closed and own is None:
            raise PolicyRefusal("plan", NO_PLAN)
        if own not in (None, hash_) or self._agreed.get("plan", hash_) != hash_:
            raise PolicyRefusal("plan", NO_SUCH_PLAN)
        if "plan" not in self._agreed:
            self._pin(plan=hash_)

    # --- what is asked --------------------------------------------------------------------------------------------

    def admit(self, question: Question) -> tuple[Ask, Step]:
        """Return the decoded question and the step to run; raise unless both are agreed and well formed."""
        ask = self._lists.complete(question.content, question.lists)
        if ask.verb not in get_args(Verb):
            raise FormatError(NO_SUCH_VERB)
        step = self._host.steps.get(ask.step) if isinstance(ask.step, str) else None
        if step is None or not self._is_planned(ask):
            names = ", ".join(self._host.config.methods)
            self._host.notice(f"was asked for {ask.step!r}, which is no step of its plan, nor of its methods {names}")
            raise FormatError(NO_SUCH_STEP)
        policy = self._host.policy
        question.content.check_once(lambda: check_question(step, ask.message, policy), step, policy)
        self._check_settings(ask)
        self._check_own_epsilon(question, ask)
        if self._announced is not None:
            self._announced.check_question(ask.step, ask.verb, occasion_of(question.place, question.hash))
        for words in filter(None, word_lists(ask.message)):
            self._check_words(words)
        self._lists.keep({fingerprint(words): words for words in word_lists(ask.message)} if question.lists else {})
        return ask, step

    def _is_planned(self, ask: Ask) -> bool:
        plan = self.plan
        return plan is None or not plan.steps or (ask.step, ask.verb) in plan.steps

    def _check_settings(self, ask: Ask) -> None:
        """Refuse settings that differ from the plan's, except in a step that releases nothing."""
        plan = self.plan
        if plan is None or (ask.step, KEEPS) in plan.steps:
            return
        for part in parts(ask.message):
            if isinstance(part, BaseModel) and not agrees(part, plan.settings):
                raise PolicyRefusal("plan", "settings differ from those that the party has agreed to")

    def _check_words(self, words: tuple[str, ...]) -> None:
        """Pin one word list per run: a server that may change the list with each question could count any word."""
        secure = self._host.secure
        if not self.closed and secure is None:
            return
        found = fingerprint(words)
        given = None if self.plan is None else self.plan.words
        if secure is not None and found == given:
            return
        if secure is not None and "words" not in self._agreed:  # the members' own words, or a part of the plan's
            secure.words.check(words)
        if (given not in (None, found) and secure is None) or self._agreed.get("words", found) != found:
            raise PolicyRefusal("words", "this is not the word list of the run, and a run has only one")
        if "words" not in self._agreed:
            self._pin(words=found)

    # --- a party's own epsilon ------------------------------------------------------------------------------------

    @property
    def _own_epsilon(self) -> float | None:
        """The party's own epsilon, of its choices."""
        own: float | None = self._host.config.settings.get(EPSILON)
        return own

    def _check_own_epsilon(self, question: Question, ask: Ask) -> None:
        """For a party with its own epsilon, refuse steps without noise, and more rounds than planned."""
        plan = self.plan
        if self._own_epsilon is None or plan is None or (ask.step, KEEPS) in plan.steps:
            return
        times = plan.noisy_rounds
        if times is None:
            raise PolicyRefusal(OWN_EPSILON, "the plan would ignore it: use a method with a private mode")
        if times:
            releases = self._host.ledger.releases()
            asked = {r.message_hash for r in releases if (r.run, r.step) == (question.run, ask.step)}
            if question.hash not in asked and len(asked) >= times:
                raise PolicyRefusal("rounds", f"{times} rounds are planned, for which its epsilon holds")

    @cached_property
    def _announced(self) -> ReleaseLimits | None:
        """The plan's limits on releases, None if the method announces none."""
        if self.plan is None or not self.plan.limits:
            return None
        left = (release for release in self._host.ledger.releases() if release.run == self._host.config.run)
        return ReleaseLimits(self.plan.limits, left, self._host.policy.max_repeats)

    def note_release(self, release: Release) -> None:
        """Count a release that was charged against the plan's limits."""
        if self._announced is not None:
            self._announced.note(release)

    def check_release(self, release: Release) -> None:
        """Refuse a release that the plan does not announce, or one without noise if the party has its own epsilon."""
        if self._announced is not None:
            self._announced.check_release(release)
        if self.plan is not None and (release.step, KEEPS) in self.plan.steps:
            raise PolicyRefusal("plan", f"'{release.what}' would leave by a step that the plan lets only keep things")
        own = self._own_epsilon
        if self.closed and own is not None and release.non_private and release.claimed is None:
            raise PolicyRefusal(OWN_EPSILON, f"'{release.what}' would leave without noise, beyond {own:g}")


def agrees(part: BaseModel, settings: Mapping[str, Any]) -> bool:
    """Tell whether the settings of a question equal the plan's, for all names that both have.

    A setting marked `OneOf` must equal one of the plan's settings that the mark names.
    """
    marks = declared(type(part))
    for name, value in part.model_dump(mode="json").items():
        one_of = next((mark.settings for mark in bare(marks[name])[1] if isinstance(mark, OneOf)), (name,))
        agreed = [found for other in one_of if (found := _setting(settings, other)) is not _NONE]
        if agreed and value not in agreed:
            return False
    return True


_NONE = object()


def _setting(settings: Mapping[str, Any], name: str) -> Any:
    """Return a setting of a plan by its name; dots lead into sections."""
    found: Any = settings
    for part in name.split("."):
        found = found.get(part, _NONE) if isinstance(found, Mapping) else _NONE
    return found


def policy_path_or_none(directory: Path, home: str | None, owners: str) -> Path | None:
    """Return the path of a party's policy; with several owners, one in `home` precedes one in `directory`."""
    places = [Path(home)] if home is not None and owners == "several" else []
    return next((path for place in (*places, directory) if (path := place / "policy.toml").exists()), None)
