"""Eight voices of three free synthesisers, one for each document, with noise at a set level."""

from __future__ import annotations

import hashlib
import math
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._arrays import F64
from tertulia.errors import InputError

RATE = 16_000  # samples per second, for both decoders
LOUDNESS = 0.05  # root mean square of speech, of a full scale of 1
# Debian: espeak-ng, flite, festival, festvox-us-slt-hts, festvox-kallpc16k, festvox-kdlpc16k
VOICES = {
    "espeak-us": ("espeak-ng", "-v", "en-us", "-s", "160", "-f", "{text}", "-w", "{wave}"),
    "flite-kal": ("flite", "-voice", "kal16", "-f", "{text}", "-o", "{wave}"),
    "flite-slt": ("flite", "-voice", "slt", "-f", "{text}", "-o", "{wave}"),
    "flite-rms": ("flite", "-voice", "rms", "-f", "{text}", "-o", "{wave}"),
    "flite-awb": ("flite", "-voice", "awb", "-f", "{text}", "-o", "{wave}"),
    "festival-slt": ("text2wave", "-eval", "(voice_cmu_us_slt_arctic_hts)", "{text}", "-o", "{wave}"),
    "festival-kal": ("text2wave", "-eval", "(voice_kal_diphone)", "{text}", "-o", "{wave}"),
    "festival-ked": ("text2wave", "-eval", "(voice_ked_diphone)", "{text}", "-o", "{wave}"),
}
PACKAGES = "espeak-ng flite festival festvox-us-slt-hts festvox-kallpc16k festvox-kdlpc16k"


def missing_programs() -> list[str]:
    """List the synthesisers that are not installed."""
    return sorted({command[0] for command in VOICES.values() if shutil.which(command[0]) is None})


def voice_of(document: str) -> str:
    """Return the voice of a document, which is always the same."""
    return list(VOICES)[_number(document) % len(VOICES)]


def speak(words: str, voice: str) -> F64:
    """Synthesise a sentence: samples at 16 kHz, all at the same loudness."""
    if missing := missing_programs():
        raise InputError(f"the voices need {', '.join(missing)}: apt-get install {PACKAGES}")
    with tempfile.TemporaryDirectory(prefix="tertulia-voice-") as folder:
        text, wave = Path(folder) / "said.txt", Path(folder) / "said.wav"
        text.write_text(words + "\n")
        command = [part.format(text=text, wave=wave) for part in VOICES[voice]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not wave.is_file():
            raise InputError(f"{' '.join(command)} failed: {done.stderr.strip()}; apt-get install {PACKAGES}")
        samples = _read(wave)
    scaled: F64 = samples * (LOUDNESS / math.sqrt(np.mean(samples**2)))
    return scaled


def add_noise(samples: F64, decibels: float, name: str) -> F64:
    """Add white noise at this number of decibels below the speech; the same name gets the same noise."""
    noise = np.random.default_rng(_number(name)).normal(0.0, LOUDNESS * 10 ** (-decibels / 20), len(samples))
    return samples + noise


def _read(wave: Path) -> F64:
    from scipy.io import wavfile
    from scipy.signal import resample_poly

    rate, raw = wavfile.read(wave)
    samples: Any = raw.astype(np.float64) / 32768.0
    if rate != RATE:
        shared = math.gcd(RATE, rate)
        samples = resample_poly(samples, RATE // shared, rate // shared)
    found: F64 = samples
    return found


def _number(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
