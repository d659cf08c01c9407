"""The whole chain: text, speech, decoder, n-best lists, rescoring, word error rate (extra `asr` and voices)."""

import pytest

from tertulia.applications import speech
from tertulia.applications.speech import NGrams, Utterance, Weights
from tertulia.errors import InputError

SENTENCES = [
    "the company said its profit rose to forty million dollars",
    "the bank will pay a dividend of ten cents per share",
    "analysts expect the price of oil to fall next month",
    "the government wants to sell bonds to foreign investors",
    "the two countries agreed to reduce trade in steel",
]


@pytest.fixture(scope="module")
def chain():
    """Load the benchmark's voices and decoders; skip with a reason if something is not installed."""
    for package in ("jiwer", "pocketsphinx", "num2words", "onnxruntime", "tokenizers"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'tertulia[asr]'")
    from benchmarks.applications.speech import moonshine, sphinx, voices

    if missing := voices.missing_programs():
        pytest.skip(f"no {', '.join(missing)}: apt-get install {voices.PACKAGES}")
    first = sphinx.Sphinx()
    if not all((moonshine.FOLDER / name).is_file() for name in moonshine.FILES):
        return voices, [first]  # Moonshine's files are fetched by the benchmark, never by a test
    return voices, [first, moonshine.Moonshine(first)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_from_text_to_word_errors(chain, tmp_path):
    voices, decoders = chain
    names = [name for name in voices.VOICES if name.startswith(("flite-rms", "festival"))]
    for decoder in decoders:
        found = []
        for i, words in enumerate(SENTENCES):
            sound = voices.add_noise(voices.speak(words, names[i % len(names)]), decoder.decibels + 10, words)
            hypotheses = tuple(decoder.decode(sound, 20))
            found.append(Utterance(f"u{i}", hypotheses, "report", tuple(words.split())))
        lists = speech.read_nbest(speech.write_nbest(tmp_path / f"{decoder.name}.jsonl", found))
        assert [u.hypotheses[0].words for u in lists] == [u.hypotheses[0].words for u in found]
        said = [u.reference for u in lists]
        lengths, documents = [len(words) for words in said], [u.id for u in lists]
        first = speech.error_rate(speech.word_errors(said, [u.first_pass for u in lists]), lengths, documents)
        assert first.mean < 0.5, f"{decoder.name} understands next to nothing"
        assert all(len({h.words for h in u.hypotheses}) == len(u.hypotheses) > 3 for u in lists)
        # A language model that has seen the sentences finds them wherever a list holds them.
        adapted = speech.with_language(lists, NGrams.train([s.split() for s in SENTENCES], 3))
        chosen = [choice.words for choice in speech.rescore(adapted, None, Weights(0.0, lm_weight=50.0))]
        assert speech.word_errors(said, chosen).sum() <= speech.word_errors(said, [u.first_pass for u in lists]).sum()


@pytest.mark.slow
def test_the_lattice_gives_pocketsphinx_own_best_path(chain):
    voices, (decoder, *_) = chain
    for words in SENTENCES[:3]:
        (best, *_) = decoder.decode(voices.speak(words, "festival-kal"), 10)
        assert " ".join(best.words) == decoder.heard


def test_a_missing_voice_is_named(monkeypatch):
    from benchmarks.applications.speech import voices

    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"espeak-ng, flite, text2wave: apt-get install"):
        voices.speak("gold", "flite-slt")


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Profit rose 5.5 pct to $40 mln (U.S.).", "profit rose five point five percent to forty million dollars u s"),
        ("Standard Oil Co <SRD> said 1,250 shrs", "standard oil company said one thousand two hundred fifty shares"),
        ("IL-2 isn't the bank's 'own'", "il two isn't the bank's own"),
    ],
)  # fmt: skip
def test_texts_are_spelled_as_they_are_spoken(written, spoken):
    pytest.importorskip("num2words")
    from benchmarks.applications.speech.texts import speakable

    assert speakable(written) == spoken
    assert speakable(spoken) == spoken
