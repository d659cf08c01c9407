"""The kernels' on-disk cache: filled once, never stale, and not needed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tertulia.kernels
from tertulia.kernels.core import jit

TOPICS = """
import numpy as np
from tertulia.kernels.lda.starts import uniform_topics
print(uniform_topics(20, 1000, np.uint64(1)))
"""
WARM = """
import numpy as np
from tertulia.kernels import lda
from tertulia.kernels.lda import fold_in
words, documents = np.array([0, 1, 1, 2]), np.array([0, 3, 4])
topics = lda.topic_word(lda.train(words, documents, 3, 4, 0.1, 0.01, 1, 4))
fold_in.theta(words, documents, topics, 0.1)
"""


def interpreter(code, root, **environment):
    """A fresh interpreter's run, with a copy of the package and a cache of its own."""
    environment = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / "cache"), **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def python(code, root, **environment):
    """What it prints."""
    return interpreter(code, root, **environment).stdout


def copy_of_package(root):
    source = Path(tertulia.kernels.__file__).parent
    shutil.copytree(source, root / "tertulia/kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "tertulia/__init__.py").touch()
    for name in ("_arrays.py", "_locks.py", "errors.py"):
        shutil.copy(source.parent / name, root / "tertulia")
    return root


def cache_of(root):
    """The machine code on disk, and when it was written."""
    return {path: path.stat().st_mtime_ns for path in (root / "cache").rglob("*.nbc")}


def test_the_cache_is_filled_once_never_stale_and_not_needed(tmp_path):
    root = copy_of_package(tmp_path)
    before, cached = python(TOPICS, root), cache_of(root)
    assert cached
    again = interpreter(TOPICS, root)
    assert (again.stdout, again.stderr, cache_of(root)) == (before, "", cached)  # nothing was compiled again
    nowhere = python(TOPICS, root, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator", NUMBA_CACHE_DIR=str(root / "no"))
    assert nowhere == before
    assert not (root / "no").exists()
    rng = root / "tertulia/kernels/core/rng.py"
    rng.write_text(rng.read_text().replace("0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5BB"))
    assert python(TOPICS, root) != before  # the file that draws topics has not changed, but what is inlined into it


def test_the_digest_covers_every_file_that_holds_a_kernel():
    package = Path(tertulia.kernels.__file__).parents[1]
    holders = {path for path in package.rglob("*.py") if re.search(r"^@(loose_)?kernel", path.read_text(), re.M)}
    assert len(holders) > 30
    assert holders <= set(jit.FILES)


@pytest.mark.slow
def test_once_warm_nothing_is_compiled_again(tmp_path):
    """One line says so while kernels compile, and none when they do not."""
    root = copy_of_package(tmp_path)
    said = interpreter(WARM, root).stderr
    assert said.startswith("tertulia: compiling kernels, about 6 s for LDA")
    assert said.count("\n") == 1
    cached = cache_of(root)
    assert len(cached) > 10
    assert interpreter(WARM, root).stderr == ""
    assert cache_of(root) == cached
