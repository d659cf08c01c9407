"""Text in: readers, tokens, sentences and units, vocabulary, splits, and the demo corpus."""

from tertulia.corpus.builder import Builder
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.readers import Source, read, read_parties
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import Assignment, Row, at_random, by_column, by_file, dirichlet
from tertulia.corpus.tokens import TextOptions, sentences, tokenize
from tertulia.corpus.vocabulary import (
    Proposal,
    Vocabulary,
    disjoint_parties,
    merge,
    pack_words,
    propose,
    public,
    unpack_words,
)

__all__ = [
    "Assignment",
    "Builder",
    "Corpus",
    "Proposal",
    "ReadReport",
    "Row",
    "Source",
    "TextOptions",
    "Vocabulary",
    "at_random",
    "by_column",
    "by_file",
    "dirichlet",
    "disjoint_parties",
    "merge",
    "pack_words",
    "propose",
    "public",
    "read",
    "read_parties",
    "sentences",
    "tokenize",
    "unpack_words",
]
