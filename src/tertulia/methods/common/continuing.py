"""What methods have in common that can go on from an earlier model, and whether it is one that they can go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from tertulia.models import Topics


class Continuing:
    """Settings of whatever can begin with the topics of an earlier model: its module has `continue_from`."""

    topics_for_all: ClassVar[bool] = True  # whether `topics` is the number of the shared model's topics

    def continued(self) -> Any:
        """The settings of a run that goes on: with fewer rounds, if there is a number of them."""
        own: Any = self
        return own.replace(rounds=own.more_rounds) if hasattr(self, "more_rounds") else self

    def why_not(self, last: Topics) -> str | None:
        """Why this model is none to go on from; None: it is one."""
        topics: Any = getattr(self, "topics", last.n_topics)
        if last.encoder is not None:
            return "it is a neural model, from which only gfedntm goes on"
        if self.topics_for_all and topics < last.n_topics:
            return (
                f"it has {last.n_topics} topics, and topics = {topics}: ask for as many, or for more to have new ones"
            )
        return None
