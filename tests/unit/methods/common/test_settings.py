"""A setting is declared once: found in the sources, so that no class escapes by not being imported."""

import ast
import inspect
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal, get_origin

import pytest
from pydantic import Field
from pydantic.fields import FieldInfo

import tertulia as tt
from tertulia.api.federated import Federated
from tertulia.errors import ConfigError
from tertulia.methods.common.descriptions import describe
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.settings import MethodSettings, own_choices
from tertulia.methods.fedlda.settings import FedLDASettings, UserSettings
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.gfedntm.settings import GFedNTMSettings, PartyTraining
from tertulia.methods.pctd.settings import PCTDSettings, SumNoise, UnitNoise, UnitSettings
from tertulia.methods.registry import METHODS, SETTINGS, CustomSettings, entry_of
from tertulia.network.party.party_directory import PartyFile
from tertulia.network.server.federation_directory import FederationFile
from tertulia.runs.settings import PartySettings, RunSettings

PACKAGE = Path(tt.__file__).parent
MEANINGS = {  # names that stand for more than one thing, and for which
    "address": "of a cluster (a run); that parties dial (federation.toml)",
    "alpha": "sum of theta's prior (LDA); of each topic (neural)",
    "channel": "of reports of tokens (FTM, Consensus; with Laplace); of users' reports (FedLDA)",
    "clip": "of a document's gradient (gFedNTM); of its counts, in messages",
    "declared_documents": "by what sums are divided (gFedNTM); what a verdict is made from (PrivateTopics)",
    "delta": "of a guarantee (PC-TD, prevalence); a topic's deserted tail (FedLDA, the paper's symbol)",
    "documents": "where a party's are (party.toml); how many, in messages",
    "embedding": "of documents (EmbeddingTopics); of sentences (neural)",
    "engine": "of a simulation, or of a run that has begun; what carries a federation (federation.toml)",
    "epsilon": "of a token (methods); of a document (prevalence)",
    "federation": "the terms on which parties meet (a run); a federation's name (party.toml)",
    "home": "of a party in one file for all; in its own file",
    "max_words": "of a vocabulary; of a user (FedLDA)",
    "members": "of a federation (federation.toml); of groups, in messages",
    "min_parties": "of a vocabulary; the part of it that travels",
    "mode": "of privacy; of a vocabulary",
    "model": "what has a topic (LDA); which network (gFedNTM); a saved one (prevalence)",
    "more_rounds": "rounds of a run that goes on; of Consensus two at least, for in its first tokens find their places",
    "name": "of a method; of a federation; of a party",
    "normalisation": "of parties together (gFedNTM); on one machine, where nothing is synchronised",
    "paper": "each method's own details of its paper",
    "parties": "of a run; names of those that data are cut into",
    "reason": "of a run; of the next run (federation.toml)",
    "rounds": "a number (LDA and PC-TD); a limit (gFedNTM); of an offer to train alone",
    "sampler": "of LDA; of FedLDA's users",
    "seed": "of a run; of a server's draws",
    "sweeps": "of LDA; of a user (FedLDA); on one machine also as many as it takes",
    "tau": "threshold of Laplace reports; how hard related words pull (PC-TD)",
    "terms": "of a federation; the part of settings that travels, in messages",
    "text": "the column of texts; how texts are cut",
    "unit": "what has one topic (PC-TD); what is hidden (PrivateTopics)",
    "users": "where one may have documents (terms); how many there are, in FedLDA's state",
    "validation": "share of documents that choose a model (a run); that stop training (neural)",
    "vectors": "of words (PC-TD); sums of them, in messages",
    "vocabulary": "of every method; of neural models, which take fewer words",
    "words": "a public word list; the words that were agreed on, in messages",
    "words_per_document": "that count for names of words (a vocabulary); of a usual document (PC-TD), or the median",
}
ARRAYS = (
    "Change",
    "Sizes",
    "Counts",
    "Count",
    "Topics",
    "TopicWord",
    "Prior",
    "Scalar",
    "Total",
    "Weight",
    "Flat",
    "Pairs",
    "Bytes",
    "Offsets",
    "Places",
    "Moments",
)
OF_MODELS = ("Architecture", "NeuralEncoder")  # messages that repeat what a trained model says of itself
PARTS = {
    Training: FTMSettings,
    UserSettings: FedLDASettings,
    UnitSettings: PCTDSettings,
    UnitNoise: PCTDSettings,
    SumNoise: PCTDSettings,
    PartyTraining: GFedNTMSettings,
}


def classes():
    """Every class of the package: its bases, and the fields that it declares with their types."""
    found = {}
    for file in sorted(
        file for room in ("methods", "runs", "network", "api") for file in (PACKAGE / room).rglob("*.py")
    ):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                fields = {
                    item.target.id: ast.unparse(item.annotation)
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                }
                is_message = any(isinstance(d, ast.Name) and d.id == "message" for d in node.decorator_list)
                found[node.name, file] = (bases, fields, is_message)
    return found


def ancestors(name, bases_of):
    return {name} | {a for base in bases_of.get(name, ()) for a in ancestors(base, bases_of)}


def aliases():
    """The names of types that carry a description: a setting that methods share."""
    found = set()
    for file in sorted((PACKAGE / "methods").rglob("settings.py")) + sorted((PACKAGE / "methods/common").glob("*.py")):
        module = import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
        for name, value in vars(module).items():
            if get_origin(value) is Annotated and FieldInfo.from_annotation(value).description:
                found.add(name)
    return found


def declarations():
    """For each setting, its declarations: aliases, and classes that declare it in another way and inherit it from none.

    Arrays are no settings.
    """
    found, shared = classes(), aliases()
    bases_of = {name: bases for (name, _), (bases, _, _) in found.items()}
    settings, messages = defaultdict(dict), defaultdict(set)
    for (name, _), (bases, fields, is_message) in found.items():
        is_setting = any("Settings" in ancestors(base, bases_of) for base in bases)  # its name may have a namesake
        for field, kind in fields.items():
            if is_setting and not kind.startswith("ClassVar"):
                settings[field][name] = kind if kind in shared else name
            elif is_message and name not in OF_MODELS and "Array" not in kind and not kind.endswith(ARRAYS):
                messages[field].add(name)
    roots = {}
    for field, where in settings.items():
        inherited = {name for name in where if where.keys() & (ancestors(name, bases_of) - {name})}
        roots[field] = {how for name, how in where.items() if name not in inherited} | messages[field]
    return roots


def test_each_setting_is_declared_once():
    """Only names that stand for several things have several declarations."""
    several = {name: sorted(where) for name, where in declarations().items() if len(where) > 1}
    assert {name: where for name, where in several.items() if name not in MEANINGS} == {}
    assert set(MEANINGS) - set(several) == set(), "the list of meanings names settings that have only one"


def test_methods_have_few_ancestors():
    """Its own settings, Federated, Explained, MethodSettings, Settings: fields stand in one flat class."""
    public = [
        kind for name in tt.__all__ if isinstance(kind := getattr(tt, name), type) and issubclass(kind, Federated)
    ]
    assert {kind.__name__ for kind in public} >= {"FTM", "Consensus", "PCTD", "FedLDA", "GFedNTM", "Alone", "Pooled"}
    for kind in public:
        ours = [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith("tertulia")]
        assert len(ours) <= 5, (kind.__name__, ours)
        fields = kind.model_fields.keys() - {"name"}
        declaring = [base for base in kind.__mro__ if inspect.get_annotations(base).keys() & fields]
        assert len(declaring) == 1, (kind.__name__, declaring)


@pytest.mark.parametrize(
    ("part", "whole"),
    PARTS.items(),
    ids=lambda kind: kind.__name__,
)
def test_the_part_that_travels_has_the_same_types_and_defaults(part, whole):
    for name, field in part.model_fields.items():
        same = whole.model_fields[name]
        assert (field.annotation, field.metadata) == (same.annotation, same.metadata), name
        assert field.default == same.default, name


@pytest.mark.parametrize(
    "kind",
    [*SETTINGS, *PARTS, RunSettings, PartySettings, FederationFile, PartyFile, tt.LDA.trainer, tt.ProdLDA.trainer],
    ids=lambda kind: kind.__name__,
)
def test_every_setting_says_what_it_means(kind):
    assert [key for key, _, _, meaning in describe(kind) if not meaning] == []
    assert [name for name, field in kind.model_fields.items() if not field.description] == []


def test_a_part_of_the_settings_has_no_others():
    training = tt.FTM(topics=7, mode="paper", epsilon=2.0).part(Training, sweeps=3)
    assert type(training) is Training
    assert (training.topics, training.sweeps, training.epsilon) == (7, 3, 2.0)
    assert "vocabulary" not in Training.model_fields
    with pytest.raises(ValueError, match="these need one"):
        training.replace(epsilon=None)


def test_parties_may_choose_what_is_marked_within_its_bounds():
    assert set(own_choices(Training)) == {"topics", "alpha", "beta", "sweeps", "model", "epsilon", "tau"}
    chosen = {"topics": 3, "model": "sentence", "top_words": 9, "threads": 2}
    assert PartySettings(**chosen).choices() == chosen
    with pytest.raises(ConfigError, match=r"parties\.north\.tau = 1: input should be less than 1"):
        RunSettings(parties={"north": {"tau": 1}})
    with pytest.raises(ConfigError, match=r"unknown key 'parties\.north\.rounds'"):
        RunSettings(parties={"north": {"rounds": 3}})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: tt.FTM(literal_compose=True),
            "unknown key 'literal_compose': it belongs to 'paper', so write 'paper.l",
        ),
        (lambda: tt.FedLDA(gamma=2), "so write 'paper.gamma'"),
        (lambda: tt.FTM(max_words=9), "so write 'vocabulary.max_words'"),
        (lambda: RunSettings(method={"name": "pctd", "noise_on": "held"}), "so write 'method.paper.noise_on'"),
        (lambda: RunSettings(quorum=1), "unknown key 'quorum': it belongs to 'federation'"),
        (lambda: tt.FTM(nonsense=1), "unknown key 'nonsense': remove it"),
    ],
)
def test_a_key_in_the_wrong_place_is_reported_with_its_place(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


def test_the_registry_knows_every_method():
    assert {kind.model_fields["name"].default for kind in SETTINGS} <= {*METHODS, "custom"}
    for name, method in METHODS.items():
        assert entry_of(method.settings(name=name)).module == method.module
        assert type(RunSettings(method={"name": name}).method) is method.settings
    custom = CustomSettings(module="mine", train="learn", config={"rounds": 2})
    assert entry_of(custom) == ("mine", "learn", {"rounds": 2})
    with pytest.raises(ConfigError, match=r"lsa.*consensus"):
        RunSettings(method={"name": "lsa"})


def test_half_a_character_is_no_text():
    with pytest.raises(ConfigError, match="half a character"):
        RunSettings(text={"language": "\ud800"})


def test_help_shows_every_setting():
    for trainer in (tt.FTM, tt.Consensus, tt.PCTD, tt.FedLDA, tt.GFedNTM, tt.LDA, tt.ProdLDA):
        for key, kind, default, _ in describe(getattr(trainer, "trainer", trainer)):
            assert kind == default or f"    {key} ({kind.split()[0]}" in trainer.__doc__
    assert "    topics (int >= 1; default 20): number of topics (K)\n" in tt.LDA.__doc__


def test_settings_describe_their_bounds():
    class Pace(MethodSettings):
        rates: tuple[float, ...] = Field((), description="rates")
        kind: Literal["slow", "fast"] | None = None

    assert [row[1:3] for row in describe(Pace)] == [
        ("str", "required"), ("list of float", "[]"), ('"slow", "fast" or None', "None"),
    ]  # fmt: skip


def test_a_former_name_is_refused_with_the_present_one():
    with pytest.raises(ConfigError, match=r"unknown key 'method\.vouched': it is called 'robust' here"):
        RunSettings(method={"name": "consensus", "topics": 4, "vouched": True}, parties={"a": {"texts": ["x y"]}})
    with pytest.raises(ConfigError, match="it is called 'robust' here"):
        tt.Consensus(topics=4, vouched=True)


def test_a_sampler_of_earlier_versions_is_read_as_auto():
    assert Training(sampler="dense").sampler == "auto"
    assert FTMSettings(sampler="dense").sampler == "auto"
    assert tt.LDA.trainer(sampler="dense").sampler == "auto"
