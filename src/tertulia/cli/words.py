"""`tertulia words`: a word list from public documents, for parties that may not show theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.reading import reads_files
from tertulia.view import console

_FILES = typer.Argument(help="Files or folders of public documents, never of a party's own.", metavar="FILE...")


@reads_files
def words(
    files: Annotated[list[str], _FILES],
    source: dict[str, Any],
    output: Annotated[Path, typer.Option("--output", "-o", help="The list, one word per line.")] = Path("words.txt"),
    max_words: Annotated[int | None, typer.Option(min=1, help="Keep so many of the most frequent.")] = 20_000,
    min_documents: Annotated[int, typer.Option(min=1, help="Documents that must hold a word.")] = 5,
    max_share: Annotated[float, typer.Option(min=0, max=1, help="Leave out words in a larger share.")] = 0.5,
    language: Annotated[str, typer.Option(help="An ISO 639-1 code: whose stop words are left out.")] = "en",
    ngrams: Annotated[int, typer.Option(min=1, help="Also phrases of up to so many words.")] = 1,
) -> None:
    """Make a word list from documents that anybody may read, the most frequent words first."""
    from tertulia._disk import atomic_write
    from tertulia.corpus import TextOptions, read
    from tertulia.corpus.vocabulary import word_list

    corpus = read(files, **source, options=TextOptions(language=language, ngrams=ngrams))
    console.say(corpus.report.summary())
    found = word_list(corpus, max_words, min_documents, max_share)
    known = corpus.encode(found).n_tokens / max(corpus.n_tokens, 1)
    atomic_write(output, "".join(f"{word}\n" for word in found.words).encode())
    console.say(
        f"{len(found)} words written to {output}: {known:.0%} of these documents' tokens. "
        f'Use it as vocabulary.mode = "public", vocabulary.words = "{output}"'
    )
