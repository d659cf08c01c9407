import pytest

from tertulia.corpus.demo_corpus import clean, docstrings
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
    assert " ".join(clean(NUMPYDOC).split()) == (
        "Return the mean of along an axis, see numpy.mean and . Values to be averaged, as in . The average. "
        "Rounding matters:: Read on at now. Averages are easy."
    )


LONG = "Rivers carry sand down to the sea where waves spread it along many beaches."
SOURCE = f'''"""{LONG} One."""
raise SystemExit
class A:
    """{LONG} Two."""
    pattern = "\\d"
    def f(self):
        """{LONG} Three."""
        def g():
            """{LONG} Hidden."""
if A:
    def h():
        "{LONG} Four."
    def same():
        "{LONG} Four."
add_newdoc("place", "thing", ("part", """{LONG} Five."""))
def short():
    """Too short."""
'''


def test_sources_are_read_but_never_run(tmp_path, monkeypatch):
    package = tmp_path / "somepackage"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text(SOURCE)
    (package / "tests" / "test_it.py").write_text(f'"""{LONG} Six."""')
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
