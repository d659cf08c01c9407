import time

import pytest

from tertulia.corpus.docstrings import clean, demo_parties, docstrings
from tertulia.errors import InputError

NUMPYDOC = """
    Return the `mean` of ``x`` along an axis, see :func:`numpy.mean` and [1]_.

    .. versionadded:: 1.7
        Long ago.

    Parameters
    ----------
    x : array_like, optional
        Values to be averaged, as in :math:`\\bar x`.

    Returns
    -------
    m : float
        The average.

    See Also
    --------
    median : another thing

    Notes
    -----
    Rounding matters::

        some_code(here)

    Read on at https://example.org/mean now.

    References
    ----------
    .. [1] A. Author, Journal of Means.

    Examples
    --------
    Averages are easy.

    >>> mean([1, 2])
    1.5
"""


def test_only_the_prose_of_a_docstring_is_kept():
    words = clean(NUMPYDOC).split()
    assert (
        words
        == (
            "Return the mean of along an axis, see numpy.mean and . Values to be averaged, as in . The average. "
            "Rounding matters:: Read on at now. Averages are easy."
        ).split()
    )


def test_sources_are_read_but_never_run(tmp_path, monkeypatch):
    package = tmp_path / "somepackage"
    (package / "tests").mkdir(parents=True)
    long = "Rivers carry sand down to the sea where waves spread it along many beaches."
    (package / "__init__.py").write_text(
        f'"""{long} One."""\nraise SystemExit\nclass A:\n    """{long} Two."""\n    def f(self):\n        """{long} Three."""\n'
        f'        def g():\n            """{long} Hidden."""\n    x = "\\d"\nif A:\n    def h():\n        "{long} Four."\n'
        f'    def same():\n        "{long} Four."\nadd_newdoc("place", "thing", ("part", """{long} Five."""))\n'
        'def short():\n    """Too short."""\n'
    )
    (package / "tests" / "test_it.py").write_text(f'"""{long} Six."""\n')
    (package / "broken.py").write_text("def (")
    monkeypatch.syspath_prepend(tmp_path)
    found = docstrings("somepackage", min_words=10)
    assert [(name, text.split()[-1]) for name, text in found] == [
        ("somepackage", "One."),
        ("somepackage.A", "Two."),
        ("somepackage.A.f", "Three."),
        ("somepackage.h", "Four."),
        ("somepackage.place.thing.part", "Five."),
    ]


def test_packages_that_are_not_there():
    with pytest.raises(InputError, match="no package 'nosuchpackage': pip install nosuchpackage"):
        docstrings("nosuchpackage")


def test_the_demo_has_three_parties_and_thousands_of_documents():
    start = time.process_time()
    parties = demo_parties()
    seconds = time.process_time() - start
    assert list(parties) == ["stdlib", "numpy", "scipy"]
    assert all(corpus.n_documents > 1000 for corpus in parties.values())
    assert sum(corpus.n_documents for corpus in parties.values()) > 5000
    assert {"scipy.stats", "scipy.signal"} <= set(parties["scipy"].table["label"])
    assert {"random", "river"} & set(parties["numpy"].vocabulary.words) == {"random"}
    assert "distribution" in parties["scipy"].vocabulary.index
    assert seconds < 30  # about 7 on one core of 2026
