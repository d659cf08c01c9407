"""Costs of a corpus: bytes per token, memory while reading, time to import."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from helpers.marks import slow
from tertulia.corpus import Corpus
from tertulia.corpus.demo_corpus import docstrings

READ = """
import re, sys
from tertulia.corpus import read

def peak(path, directory):
    corpus = read(path, directory=directory)
    status = open("/proc/self/status").read()  # unlike ru_maxrss, it does not start from the parent's peak
    return corpus.n_documents, int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) / 1024

small, large, directory = sys.argv[1:]
print(*peak(small, directory + "/s"), *peak(large, directory + "/l"))
"""


def write(path, megabytes):
    """Write documents of 8 kB, mostly dashes, so that only reading is measured."""
    filler = "-" * 8000
    rows = [{"text": f"Rivers and bridges {i}. {filler}"} for i in range(megabytes * 125)]
    if path.suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path, row_group_size=500)
    elif path.suffix == ".csv":
        path.write_text("text\n" + "".join(row["text"] + "\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(("kind", "small", "large"), [("jsonl", 8, 40), slow("csv", 8, 40), slow("parquet", 48, 96)])
def test_memory_does_not_grow_with_the_file(tmp_path, kind, small, large):
    files = [write(tmp_path / f"{size}.{kind}", size) for size in (small, large)]
    done = subprocess.run(
        [sys.executable, "-c", READ, *files, str(tmp_path)], capture_output=True, text=True, check=True
    )
    few, before, many, after = map(float, done.stdout.split())
    assert (few, many) == (small * 125, large * 125)
    assert after - before < (large - small) / 2  # MB; polars reads a few batches ahead


def test_real_text_takes_at_most_twelve_bytes_a_token():
    corpus = Corpus.from_texts([text for _, text in docstrings("email")])
    arrays = (corpus.words, corpus.documents, corpus.sentences, corpus.paragraphs)
    assert corpus.n_tokens > 3000
    assert sum(array.nbytes for array in arrays) <= 12 * corpus.n_tokens


def test_importing_the_corpus_does_not_import_polars():
    script = (
        "import sys, tertulia.corpus; print([m for m in ('polars', 'regex', 'scipy', 'jieba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
