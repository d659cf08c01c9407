from pathlib import Path

from tertulia.api import arguments as typed
from tertulia.cli.arguments import arguments
from tertulia.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "reference.md"


def test_the_arguments_of_estimators_are_current():
    command = "run `python -m tertulia.cli.arguments > src/tertulia/api/arguments.py`"
    assert Path(typed.__file__).read_text() == arguments(), command


def test_the_reference_page_is_current():
    assert PAGE.read_text() == reference(), "run `python -m tertulia.cli.reference > docs/reference.md`"


def test_the_reference_page_has_every_section():
    page = reference()
    for section in (
        'name = "consensus"',
        'name = "gfedntm"',
        "[method.vocabulary]",
        "[text]",
        "[parties.NAME]",
        "[data]",
    ):
        assert section in page
    assert "| `paper.literal_compose` | bool or None | None | " in page
