"""`tertulia init`: ask a few questions and write a first config and policy; with `--members` create a federation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tertulia.cli.operator import create_federation
from tertulia.cli.options import OPERATOR, Days, Statements, Yes, ask_statements, next_steps
from tertulia.errors import ConfigError
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.runs.templates import Outline

METHODS = ("consensus", "ftm")
_LANGUAGES = "an ISO 639-1 code, such as en, de or zh"


def init(
    directory: Annotated[
        Path, typer.Argument(help="Directory to create; with --members, the name of the federation.", metavar="NAME")
    ] = Path(),
    members: Annotated[
        str | None, typer.Option(help="Parties on other machines, separated by commas: create a federation.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="With --members: host:port that parties connect to.")] = None,
    days: Days = 7.0,
    parties: Annotated[
        list[str] | None,
        typer.Option("--party", help="A party and its documents, once for each party.", metavar="NAME=FILE"),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Answer to a question: column, method, topics, private, language, words.", metavar="KEY=VALUE"
        ),
    ] = None,
    stated: Statements = None,
    yes: Yes = False,
) -> None:
    """Ask a few questions and write run.toml and policy.toml for one machine; with --members create a federation."""
    if members is not None:
        if parties or given:
            raise ConfigError("--party and --set are for one machine: with --members each party says where it is")
        create_federation(directory, members, address, days, ask_statements(OPERATOR, stated, yes=yes))
        return
    if address is not None:
        raise ConfigError("--address is for a federation: give --members, too")
    from tertulia.runs.templates import run_name

    outline = _ask_all(parties or [], _pairs(given or [], "--set"), yes)
    outline = outline._replace(operator=ask_statements(OPERATOR, stated, yes=yes))
    config, policy = outline.write(directory)
    console.line(f"{config} says what is trained, {policy} what may leave a party: both explain themselves")
    if not outline.private and len(outline.parties) > 1:
        console.line(
            "Nothing is protected so far: for documents of others, answer yes to noise, or see docs/threats.md"
        )
    run = directory / "runs" / run_name(directory)
    next_steps(f"tertulia check {config}", f"tertulia run {config}", f"tertulia topics {run}")


class _Question(NamedTuple):
    """A question: its key, its text, the proposed answer, and a parser that raises `ConfigError`."""

    key: str
    text: str
    proposal: str | None
    read: Callable[[str], Any]


def _ask_all(parties: list[str], given: dict[str, str], yes: bool) -> Outline:
    """Collect all answers, from options or by questions."""
    from tertulia.runs.templates import Outline

    known = {"column", "method", "topics", "private", "language", "words"}
    if strangers := sorted(set(given) - known):
        raise ConfigError(f"--set {strangers[0]}: there is no such answer; there are {', '.join(sorted(known))}")
    files = {name: _file(path) for name, path in _pairs(parties, "--party").items()} or _ask_parties(yes)

    def find(key: str, text: str, proposal: str | None, read: Callable[[str], Any]) -> Any:
        return _answer(_Question(key, text, proposal, read), given.get(key), yes)

    asked = "Which column holds the text (NAME=COLUMN,NAME=COLUMN where parties differ)?"
    columns = find("column", asked, "text", lambda answer: _columns(answer, files))
    alone = len(files) == 1  # of which nothing leaves
    if alone and (needless := sorted(given.keys() & {"method", "private", "words"})):
        raise ConfigError(f"--set {needless[0]}: one party trains alone, and nothing leaves; give --party once more")
    method = "alone" if alone else find("method", f"Which method ({' or '.join(METHODS)})?", "consensus", _method)
    topics = find("topics", "How many topics?", "20", _number)
    private = not alone and find("private", "Shall noise protect what leaves (yes or no)?", "no", _truth)
    language = find("language", f"Which language ({_LANGUAGES})?", "en", _language)
    listed = "english" if language == "en" else None
    words = None
    if private:
        words = find("words", "Which public word list (a file, one word per line)?", listed, _word_list)
    return Outline(files, columns, method, topics, private, language, words)


def _answer(question: _Question, given: str | None, yes: bool) -> Any:
    """Return the given, proposed or typed answer; ask again after an invalid typed one."""
    if given is not None:
        return _named(question, given)
    if yes:
        if question.proposal is None:
            raise ConfigError(f"nothing can be proposed for '{question.key}': give --set {question.key}=...")
        return _named(question, question.proposal)
    shown = f" [{question.proposal}]" if question.proposal else ""
    while True:
        typed = _typed(f"{question.text}{shown} ").strip() or (question.proposal or "")
        try:
            return question.read(typed)
        except ConfigError as error:
            console.say(str(error))


def _named(question: _Question, text: str) -> Any:
    try:
        return question.read(text)
    except ConfigError as error:
        raise ConfigError(f"{question.key} = '{text}': {error}") from None


def _ask_parties(yes: bool) -> dict[str, Path]:
    """Ask for names and files until an empty line."""
    if yes:
        raise ConfigError("whose documents? Give --party NAME=FILE once for each party")
    found: dict[str, Path] = {}
    while True:
        typed = _typed("A party and its documents, NAME=FILE (an empty line ends the list): ").strip()
        if not typed and found:
            return found
        try:
            if not typed:
                raise ConfigError("at least one party is needed")
            found |= {name: _file(path) for name, path in _pairs([typed], "a party").items()}
        except ConfigError as error:
            console.say(str(error))


def _typed(prompt: str) -> str:
    try:
        return input(prompt)
    except EOFError:
        raise ConfigError("there are no more answers: give them as options, or --yes for what is proposed") from None


def _pairs(given: list[str], what: str) -> dict[str, str]:
    """Parse KEY=VALUE into a dict."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ConfigError(f"{what} '{text}': write it as NAME=VALUE, such as north=north.jsonl")
        if name in found:
            raise ConfigError(f"{what} '{name}' is given twice")
        found[name] = value
    return found


def _file(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.exists():
        raise ConfigError(f"{path} does not exist: give a file, or a folder of .txt files")
    return path


def _columns(answer: str, files: dict[str, Path]) -> dict[str, str]:
    """Parse the column of each party's file: one for all, or one for each party by name."""
    from tertulia.operations.doctor import BAD, check_documents

    columns = _pairs(answer.split(","), "column") if "=" in answer else dict.fromkeys(files, answer)
    if odd := sorted(columns.keys() ^ files.keys()):
        raise ConfigError(f"party '{odd[0]}': name the column of each party, and of no other")
    for party, path in files.items():
        found = check_documents({"path": str(path), "text": columns[party]})
        if found.state == BAD:
            raise ConfigError(f"party '{party}': {found.text}")
    return columns


def _method(text: str) -> str:
    if text not in METHODS:
        raise ConfigError(f"write {' or '.join(METHODS)}; docs/reference.md has the others, for run.toml")
    return text


def _number(text: str) -> int:
    if not (text.isdecimal() and 2 <= int(text) <= 10_000):
        raise ConfigError("write a whole number from 2 to 10000")
    return int(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("yes", "no", "y", "n", "true", "false"):
        raise ConfigError("write yes or no")
    return text.lower() in ("yes", "y", "true")


def _language(text: str) -> str:
    from tertulia.corpus import TextOptions
    from tertulia.errors import InputError

    try:
        return TextOptions(language=text).language
    except InputError as error:
        raise ConfigError(str(error)) from None


def _word_list(text: str) -> str:
    if not text:
        raise ConfigError("noise needs a list of words that is public: `tertulia words FILE...` makes one")
    return text if text == "english" else str(_file(text))
