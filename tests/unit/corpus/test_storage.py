"""A corpus on disk is complete or absent, with other readers and writers, and when the writer is killed."""

import signal
import subprocess
import sys

import pytest

from tertulia.corpus import Corpus, TextOptions, storage
from tertulia.corpus.builder import Builder

PLAIN = TextOptions(stop_words="none", min_length=1)
TEXTS = ["Oak elm. Fir oak!\n\nAsh.", "", "Elm elm elm elm. Fir."]


def corpus_of(texts):
    return Corpus.from_texts(texts, options=PLAIN)


def nested(corpus):
    words = [corpus.vocabulary.words[w] for w in corpus.words]
    return [words[a:b] for a, b in zip(corpus.documents[:-1], corpus.documents[1:], strict=True)]


def test_two_builders_in_one_directory_do_not_mix(tmp_path):
    short, long = Builder(PLAIN, tmp_path), Builder(PLAIN, tmp_path)
    short.add("a", "oak")
    for i in range(50):
        long.add(str(i), "elm ash fir")
    first = long.finish()
    assert nested(Corpus.load(tmp_path)) == nested(first)
    second = short.finish()
    assert nested(Corpus.load(tmp_path)) == nested(second) == nested(corpus_of(["oak"]))
    assert first.words.tolist() == [0, 1, 2] * 50  # mapped arrays stay readable
    assert len(list(tmp_path.iterdir())) == 2


KILLED = """
import os, signal, sys
from pathlib import Path
import tertulia.corpus.storage as storage
from tertulia.corpus.builder import Builder

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

directory, moment = sys.argv[1:]
builder = Builder(directory=directory)
builder.add("a", "oak")
if moment == "adding":
    die()
setattr(storage, {"writing": "sync_files", "renaming": "atomic_write", "after": "_remove_leftovers"}[moment], die)
builder.finish()
"""


@pytest.mark.parametrize("moment", ["adding", "writing", "renaming", "after"])
def test_kill_9_while_a_corpus_is_built_leaves_the_old_or_the_new(tmp_path, moment):
    corpus_of(TEXTS).save(tmp_path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), moment], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list(tmp_path.glob("corpus-arrays-*"))) == 2  # a leftover of the crash
    expected = corpus_of(["oak"]) if moment == "after" else corpus_of(TEXTS)
    assert nested(Corpus.load(tmp_path)) == nested(expected)
    corpus_of(["elm"]).save(tmp_path)
    assert nested(Corpus.load(tmp_path)) == nested(corpus_of(["elm"]))
    assert len(list(tmp_path.iterdir())) == 2  # the leftover is removed


def test_a_corpus_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    corpus_of(TEXTS).save(tmp_path)
    real = storage.load_array

    def replaced(path, mmap=True):
        monkeypatch.setattr(storage, "load_array", real)
        corpus_of(["oak"]).save(tmp_path)
        return real(path, mmap)

    monkeypatch.setattr(storage, "load_array", replaced)
    assert nested(Corpus.load(tmp_path)) == nested(corpus_of(["oak"]))
