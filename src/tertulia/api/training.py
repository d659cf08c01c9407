"""What trains topics: settings that are checked, and one verb."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

from tertulia.api.federated import choose_words
from tertulia.api.progress import Tick
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.counts import from_counts, is_matrix
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.methods.common.settings import Explained, OverWords
from tertulia.models import Topics

if TYPE_CHECKING:
    from tertulia.api.estimators import Estimator


class FitOptions(TypedDict, total=False):
    """What an estimator's `fit` takes besides documents and labels."""

    start: Topics | Estimator | None
    seed: int | None
    text: TextOptions | None
    progress: bool | Tick | None
    column: str | None


class How(NamedTuple):
    """How one training goes, beyond a trainer's settings."""

    start: Topics | None = None  # the model to go on from
    seed: int = 0
    text: TextOptions | None = None  # how texts are cut into words
    progress: Tick | None = None  # called after each sweep or epoch


class Trainer(Explained, OverWords):
    """The settings of a trainer."""

    measured: ClassVar[tuple[str, str]] = ("sweep", "perplexity")  # what progress counts, and what it shows

    @property
    def steps(self) -> int | None:
        """How many sweeps or epochs there will be, if that is known."""
        return None

    @abstractmethod
    def train(self, documents: Documents, how: How) -> Topics:
        """Train on whatever documents a user has."""

    def _corpus(self, documents: Documents, text: TextOptions | None, keep_text: bool = False) -> Corpus:
        """Documents over the words to model; a matrix says itself which these are."""
        if is_matrix(documents):
            return from_counts(documents)
        corpus = as_corpus(None, documents, text, keep_text)
        return corpus.encode(choose_words(corpus, self.vocabulary))


def own_settings(trainer: Trainer) -> dict[str, Any]:
    """What a model remembers of how it was trained; its words it has anyway."""
    return trainer.model_dump(exclude={"vocabulary"})
