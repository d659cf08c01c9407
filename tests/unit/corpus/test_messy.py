"""Messy text: HTML, broken characters, copies and empty documents, other languages, phrases."""

import warnings

import numpy as np
import pytest

import tertulia as tt
from tertulia.corpus.advice import LanguageWarning
from tertulia.corpus.languages import NAMES, LanguageSample, detect
from tertulia.corpus.mojibake import is_broken, repair
from tertulia.corpus.report import ReadReport
from tertulia.corpus.vocabulary import merge, prune, word_list
from tertulia.errors import ConfigError

BY_LANGUAGE = {
    "ar": "دخل المريض المستشفى بسبب ألم في الصدر بعد رحلة طويلة ولكن لم يكن لديه حمى في ذلك اليوم",
    "cs": "Pacient byl přijat s bolestí na hrudi po dlouhé cestě, ale neměl žádnou horečku a už se cítil dobře.",
    "de": "Der Regen fiel in der Nacht und die Flüsse stiegen, aber die Brücken über den Strom hielten noch.",
    "en": "The patient was admitted with chest pain and shortness of breath after a long flight.",
    "es": "El paciente ingresó por dolor en el pecho después de un largo viaje, y no tenía fiebre.",
    "fr": "Le patient a été admis pour une douleur thoracique après un long voyage en avion dans la nuit.",
    "it": "Il paziente è stato ricoverato per un dolore al petto dopo un lungo viaggio, e non aveva la febbre.",
    "ja": "夜に雨が降り、川の水が増えたが、橋はまだ残っている。",
    "nl": "De patiënt werd opgenomen met pijn op de borst na een lange reis, maar had geen koorts.",
    "pl": "Pacjent został przyjęty z bólem w klatce piersiowej po długiej podróży, ale nie miał gorączki.",
    "pt": "O paciente foi internado com dor no peito depois de uma longa viagem, mas não tinha febre.",
    "ru": "Пациент поступил с болью в груди после долгой поездки, но у него не было температуры.",
    "sv": "Patienten kom in med smärta i bröstet efter en lång resa, men han hade inte någon feber.",
    "zh": "夜里下了雨河水上涨了。但是桥梁仍然没有倒塌。",
}


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("Itâ€™s a cafÃ©.", "It’s a café."),
        ("GrÃ¶ÃŸe und MaÃŸ", "Größe und Maß"),
        ("Ð¢ÐµÐ¼Ñ‹", "Темы"),
        ("ÃƒÂ©tÃƒÂ©", "été"),  # twice
        ("one line: Ã©\nanother: é", "one line: é\nanother: é"),
    ],
)
def test_broken_characters_are_repaired(broken, whole):
    assert is_broken(broken)
    assert repair(broken) == whole
    assert repair(whole) == whole


@pytest.mark.parametrize(
    "text", ["", "plain", *BY_LANGUAGE.values(), "«Où?» — À 5 €…", "NÃO, São Paulo", "A² ± 5 µm, 20 °C"]
)
def test_what_is_whole_stays_as_it_is(text):
    assert repair(text) == text
    assert not is_broken(text)


def test_html_and_broken_characters_are_noted_and_mended_if_that_is_wanted():
    texts = ["<p>The river</p><p>rose.</p>", "A cafÃ© opened.", "Rain and wind: 3 < 5, a &c."]
    left = tt.Corpus.from_texts(texts)
    assert [count for reason, count in left.report.noted.items() if "clean = true" in reason] == [1, 1]
    assert "cafã" in left.vocabulary.words
    mended = tt.Corpus.from_texts(texts, options=tt.TextOptions(clean=True))
    assert set(mended.vocabulary.words) == {"river", "rose", "café", "opened", "rain", "wind"}
    assert sorted(mended.report.noted.values()) == [1, 1]
    assert not [reason for reason in mended.report.noted if "clean" in reason]


def test_copies_are_reported_also_of_few_documents():
    text = " ".join(f"word{letter}" for letter in "abcdefghijklm")
    report = tt.Corpus.from_texts([text, "short text", "short text", text, text + " rivers"]).report
    assert report.noted["the same words as an earlier one"] == 1


@pytest.mark.parametrize(("language", "text"), BY_LANGUAGE.items())
def test_languages_are_found(language, text):
    assert detect(text) == language
    assert language in NAMES


@pytest.mark.parametrize(
    "text", ["", "rivers bridges", "Shr 3 cts vs 1 ct Net 5 vs 2 Revs 7 mln vs 9 mln Avg shrs 3 mln"]
)
def test_of_few_words_and_of_tables_no_language_is_said(text):
    assert detect(text) is None


def test_a_sample_estimates_shares_from_few_documents():
    sample = LanguageSample()
    for n in range(5_000):
        sample.look(BY_LANGUAGE["de"] if n % 4 == 0 or n % 7 == 0 else BY_LANGUAGE["en"])
    assert sample._looked < 250
    assert abs(sample.shares["de"] - (1 / 4 + 1 / 7 - 1 / 28)) < 0.25
    assert sum(sample.shares.values()) == pytest.approx(1)


def test_the_report_says_the_languages_and_survives_json():
    report = tt.Corpus.from_texts([BY_LANGUAGE["en"]] * 3 + [BY_LANGUAGE["fr"]], options=tt.TextOptions()).report
    assert "languages, by a sample: English 75%, French 25%" in report.summary()
    assert ReadReport.from_dict(report.to_dict()) == report
    assert (report + report).languages == report.languages


def test_a_party_in_another_language_is_named():
    english, german = [BY_LANGUAGE["en"]] * 5, [BY_LANGUAGE["de"]] * 5
    words = {"mode": "public", "words": ["chest", "pain", "flight", "regen", "nacht"]}
    settings = tt.Consensus(topics=2, rounds=1, sweeps=2, vocabulary=words)
    with pytest.warns(LanguageWarning, match="party 'south' are mostly German, those of others English"):
        settings.fit({"north": english, "east": english, "south": german})
    with warnings.catch_warnings():
        warnings.simplefilter("error", LanguageWarning)
        settings.fit({"north": english, "east": english})


# --- phrases ----------------------------------------------------------------------------------------------------------

TEXTS = ["acute heart attack at night"] * 8 + ["good food at home", "good house, good street", "a night at home"] * 6
PAIRS = tt.TextOptions(ngrams=2)


def phrases_in(words):
    return {word for word in words if "_" in word}


def test_phrases_stand_together_more_often_than_by_chance():
    every = {"vocabulary": {"min_documents": 1, "max_share": 1.0}}
    all_pairs = tt.LDA(topics=2, sweeps=2, **every).fit(TEXTS, text=PAIRS)
    every["vocabulary"]["phrases"] = True
    chosen = tt.LDA(topics=2, sweeps=2, **every).fit(TEXTS, text=PAIRS)
    assert phrases_in(chosen.vocabulary.words) < phrases_in(all_pairs.vocabulary.words)
    assert {"heart_attack", "acute_heart"} <= phrases_in(chosen.vocabulary.words)
    assert "night_home" not in chosen.vocabulary.words
    assert set(chosen.vocabulary.words) - phrases_in(chosen.vocabulary.words) == (
        set(all_pairs.vocabulary.words) - phrases_in(all_pairs.vocabulary.words)
    )


def test_totals_of_parties_decide_and_not_those_of_one():
    counts = {"heart": 9, "attack": 9, "heart_attack": 8, "good": 60, "day": 60, "good_day": 22}
    whole = prune(tuple(counts), np.array(list(counts.values())), 100, (1, 1.0), None, True)
    assert phrases_in(whole.words) == {"heart_attack"}
    half = (list(counts), [count // 2 for count in counts.values()], 50)
    assert set(merge({"a": half, "b": half}, phrases=True).words) == set(whole.words)


def test_phrases_are_learned_from_public_text():
    public = tt.Corpus.from_texts(TEXTS, options=PAIRS)
    assert "heart_attack" in word_list(public, min_documents=1, phrases=True).words
    assert "night_home" in word_list(public, min_documents=1).words
    assert "night_home" not in word_list(public, min_documents=1, phrases=True).words


def test_phrases_of_single_words_are_refused():
    with pytest.raises(ConfigError, match=r"there are none: set text.ngrams = 2"):
        tt.Consensus(topics=2, vocabulary={"phrases": True}).fit({"a": TEXTS, "b": TEXTS})
