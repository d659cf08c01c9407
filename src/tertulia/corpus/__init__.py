"""Text input: readers and file formats, tokens, vocabulary, splits into parties, and the demo corpus."""

from tertulia.corpus.corpus import Corpus
from tertulia.corpus.readers import read
from tertulia.corpus.tokens import TextOptions
from tertulia.corpus.vocabulary import Vocabulary

__all__ = ["Corpus", "TextOptions", "Vocabulary", "read"]
