import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.corpus import TextOptions
from tertulia.corpus.tokens import segment, sentences, splitter, stop_words, tokenize
from tertulia.errors import InputError

PLAIN = TextOptions(stop_words="none", min_length=1)


def plain(text, **options):
    return tokenize(text, TextOptions(stop_words="none", **{"min_length": 1, **options}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Cat's hat, the dogs' bone", ["the", "cat", "hat", "the", "dogs", "bone"]),
        ("don't won’t o'clock rock'n'roll", ["don't", "won't", "o'clock", "rock'n'roll"]),
        ("state-of-the-art array_like", ["state", "of", "the", "art", "array", "like"]),
        ("mp3 covid19 3rd 42 3.14 b2b", ["mp3", "covid19", "b2b"]),
        ("'quoted' \"words\" (here)", ["quoted", "words", "here"]),
        ("e\u0301te\u0301 été", ["été", "été"]),  # two ways to type é
        ("co\u00adoperate", ["cooperate"]),  # a soft hyphen
        ("Straße ΟΔΟΣ П'ЯТЬ", ["straße", "οδος", "п'ять"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),  # vowel signs are marks
        ("می\u200cخواهم", ["می\u200cخواهم"]),  # joined by a zero-width non-joiner
        ("السلام عليكم", ["السلام", "عليكم"]),
        ("", []),
        ("... 123 !?", []),
    ],
)
def test_words(text, expected):
    assert plain(text) == expected


def test_numbers_case_and_length():
    assert plain("In 1999 3.5 of 1,000 m2", numbers=True) == ["in", "1999", "3.5", "of", "1,000", "m2"]
    assert plain("Big IBM'S", lowercase=False) == ["Big", "IBM"]
    assert plain("a an ant ants", min_length=3) == ["ant", "ants"]


def test_stop_words_go_in_every_case():
    assert tokenize("The river AND the banks") == ["river", "banks"]
    assert tokenize("The River AND the Banks", TextOptions(lowercase=False)) == ["River", "Banks"]
    own = TextOptions(stop_words=("River",))
    assert tokenize("The river and the banks", own) == ["the", "and", "the", "banks"]
    assert tokenize("Don’t isn't Boston's") == ["boston"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("fr", "L'arbre qu'il a vu aujourd'hui n'est pas l’étoile", ["arbre", "étoile"]),
        ("it", "Nell'acqua dell'oceano c'era un'onda", ["acqua", "oceano", "onda"]),
        ("de", "Der Fluss und die Brücken über den Straßen", ["fluss", "brücken", "straßen"]),
        ("es", "El niño no tenía ningún año bueno", ["niño", "año"]),
        ("ru", "Река и мосты не были в городе", ["река", "мосты", "городе"]),
        ("tr", "ISPARTA ve İzmir", ["ısparta", "izmir"]),
        ("el", "Ο ποταμός και η γέφυρα", ["ποταμός", "γέφυρα"]),
    ],
)
def test_languages(language, text, expected):
    assert tokenize(text, TextOptions(language=language)) == expected


def test_chinese_is_cut_into_words():
    options = TextOptions(language="zh")
    assert tokenize("我们在北京大学学习机器翻译，共3年。", options) == ["北京大学", "学习", "机器翻译"]
    assert sentences("天气很好。我们去公园！\n\n明天下雨？", options) == [[["天气"], ["公园"]], [["明天", "下雨"]]]


def test_chinese_without_jieba_names_the_extra(monkeypatch):
    import importlib

    def refuse(name, *rest):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    splitter.cache_clear()
    with pytest.raises(InputError, match=r"pip install 'tertulia\[zh\]'"):
        tokenize("天气", TextOptions(language="zh", min_length=1))


def test_an_unknown_language_lists_the_known_ones():
    with pytest.raises(InputError, match=r"language 'xx'\. Choose one of af, ar, .*, zu"):
        TextOptions(language="xx")
    assert tokenize("qapla batlh", TextOptions(language="xx", stop_words="none")) == ["qapla", "batlh"]


def test_bad_options_are_errors():
    with pytest.raises(InputError, match="stop_words = 'english'"):
        TextOptions(stop_words="english")
    with pytest.raises(InputError, match="min_length = 0"):
        TextOptions(min_length=0)


def test_options_survive_json():
    for options in (TextOptions(), TextOptions("es", False, 3, True, ("uno", "dos"))):
        assert TextOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    with pytest.raises(InputError, match="text options stemming are unknown to this version: update tertulia"):
        TextOptions.from_dict({"language": "en", "stemming": True})


def test_stop_words_of_many_languages_are_there():
    assert "und" in stop_words(TextOptions("de"))
    assert {"the", "don't", "which"} <= stop_words(TextOptions("en"))
    assert stop_words(TextOptions("en")).isdisjoint({"computer", "system", "world", "money"})  # they are topics
    assert "的" in stop_words(TextOptions("zh"))
    assert stop_words(PLAIN) == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Ruiz met J. S. Bach vs. Handel.", ["Dr. Ruiz met J. S. Bach vs. Handel."]),
        ("It cost 3.50 at v2.0.1 of file.txt. Fine.", ["It cost 3.50 at v2.0.1 of file.txt.", "Fine."]),
        ("Use it, e.g. Monday. Then stop.", ["Use it, e.g. Monday.", "Then stop."]),
        ("Yahoo! is old. He said “no.” She left.", ["Yahoo! is old.", "He said “no.”", "She left."]),
        ("Well... maybe. Or... Not.", ["Well... maybe.", "Or...", "Not."]),
        ("A line\nbreak ends nothing. So there.", ["A line\nbreak ends nothing.", "So there."]),
        ("天气很好。我们去公园！真的？「是。」好", ["天气很好。", "我们去公园！", "真的？", "「是。」", "好"]),
        ("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
        ("هل هذا صحيح؟ نعم.", ["هل هذا صحيح؟", "نعم."]),
        ("¿Qué? ¡Sí! Año 2. Fin.", ["¿Qué?", "¡Sí!", "Año 2.", "Fin."]),
    ],
)
def test_sentences_end_where_they_should(text, expected):
    assert segment(text) == [expected]


def test_blank_lines_end_paragraphs():
    assert segment("One two\n \t\nthree.\r\n\r\nFour\rfive\n\n\n") == [["One two"], ["three."], ["Four\nfive"]]
    assert segment(" \n\n ") == []


@given(st.text())
def test_segmenting_loses_nothing_but_white_space(text):
    assert "".join("".join("".join(p) for p in segment(text)).split()) == "".join(text.split())


@given(st.text(st.characters(codec="ascii")))
def test_plain_ascii_is_cut_like_any_other_text(text):
    # A Greek letter set apart sends the same text through the general pattern.
    assert plain(text + " ω") == [*plain(text), "ω"]


@given(st.text("aB1'. \n-é中", max_size=40))
def test_structure_and_tokens_agree(text):
    nested = sentences(text, PLAIN)
    assert all(sentence for paragraph in nested for sentence in paragraph)
    assert all(paragraph for paragraph in nested)
    assert [w for paragraph in nested for sentence in paragraph for w in sentence] == tokenize(text, PLAIN)


# --- tokenisers of one's own, and n-grams ---------------------------------------------------------------------------


def cut(text):
    return [part for part in text.replace(".", "").split("-") if part]


OWN = TextOptions(tokenizer=cut)


def test_a_method_of_text_is_a_tokeniser():
    options = TextOptions(tokenizer=str.split)
    assert options.to_dict()["tokenizer"] == "builtins.str.split"
    assert sentences("the-Oak tree", options) == [[["the-Oak", "tree"]]]


def test_n_grams_stay_within_sentences():
    found = sentences("Acute heart attack. Ward closed.", TextOptions(ngrams=3))
    assert found == [
        [["acute", "heart", "acute_heart", "attack", "heart_attack", "acute_heart_attack"],
         ["ward", "closed", "ward_closed"]]
    ]  # fmt: skip
    with pytest.raises(InputError, match="ngrams = 0 must be between 1"):
        TextOptions(ngrams=0)


def test_an_own_tokeniser_gets_sentences_and_is_obeyed():
    assert sentences("the-Oak. An-elm.", OWN) == [[["the", "Oak"], ["An", "elm"]]]
    assert sentences("the-Oak", TextOptions(tokenizer=cut, ngrams=2)) == [[["the", "Oak", "the_Oak"]]]
    with pytest.raises(InputError, match=r"the tokeniser '.*' must give a list of words, none of them empty"):
        sentences("a", TextOptions(tokenizer=lambda text: [""]))


def test_only_its_name_is_stored():
    stored = OWN.to_dict()
    assert stored["tokenizer"] == f"{__name__}.cut"
    assert "function" not in stored
    again = TextOptions.from_dict(stored)
    assert again == OWN
    with pytest.raises(InputError, match=r"cut', and that function is not here: give lists of tokens"):
        sentences("the-Oak", again)
    assert sentences("the-Oak", again.with_tokenizer(cut)) == [[["the", "Oak"]]]
    assert set(TextOptions().to_dict()) == {"language", "lowercase", "min_length", "numbers", "stop_words"}


def test_two_functions_of_one_name_are_two():
    first, second = (TextOptions(tokenizer=function) for function in (lambda text: ["a"], lambda text: ["b"]))
    assert sentences("x", first) == [[["a"]]]
    assert sentences("x", second) == [[["b"]]]


def test_extra_stop_words_are_left_out_beside_the_languages():
    options = TextOptions(extra_stop_words=("Patient", "ward"))
    assert tokenize("The patient is on the ward with a fever", options) == ["fever"]
    assert tokenize("The patient sleeps", TextOptions(stop_words="none", extra_stop_words=("patient",))) == [
        "the",
        "sleeps",
    ]
    assert TextOptions.from_dict(options.to_dict()) == options
    assert "extra_stop_words" not in TextOptions().to_dict()
    assert sentences("The patient slept.", options, keep_places=True) == [[["<unk>", "slept"]]]
    with pytest.raises(InputError, match="write a list, \\['ward'\\]"):
        TextOptions(extra_stop_words="ward")
