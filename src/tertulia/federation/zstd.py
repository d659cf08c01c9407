"""Frames of zstd: by the standard library from Python 3.14 on, before that by the package `zstandard`."""

from __future__ import annotations

import sys
from typing import Protocol


class Compressor(Protocol):
    """A compressor that makes one frame of each input, which says the size of its contents."""

    def compress(self, data: bytes, /) -> bytes:
        """Compress data to a frame."""


if sys.version_info >= (3, 14):
    from compression import zstd

    ZstdError = zstd.ZstdError

    class _Compressor:
        def __init__(self, level: int) -> None:
            self._own = zstd.ZstdCompressor(level)

        def compress(self, data: bytes, /) -> bytes:
            return self._own.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)

    def compressor(level: int) -> Compressor:
        """Return a compressor for many inputs: to make one takes longer than to compress a short input."""
        return _Compressor(level)

    def content_size(frame: bytes | memoryview) -> int | None:
        """Return the size of what a frame holds; None if it does not say."""
        return zstd.get_frame_info(frame).decompressed_size

    def decompress(frame: bytes | memoryview, size: int) -> bytes:
        """Return what a frame holds, of the given size; raise `ValueError` if it is another, or if bytes follow."""
        decompressor = zstd.ZstdDecompressor()
        data = decompressor.decompress(frame, size)
        if len(data) != size or not decompressor.eof or decompressor.unused_data:
            raise ValueError("a section has another size")
        return data

else:
    import zstandard

    ZstdError = zstandard.ZstdError

    def compressor(level: int) -> Compressor:
        """Return a compressor for many inputs: to make one takes longer than to compress a short input."""
        return zstandard.ZstdCompressor(level=level)

    def content_size(frame: bytes | memoryview) -> int | None:
        """Return the size of what a frame holds; a number that none has if it does not say."""
        return zstandard.frame_content_size(frame)

    def decompress(frame: bytes | memoryview, size: int) -> bytes:
        """Return what a frame holds, of the given size; raise `ZstdError` if it is another, or if bytes follow."""
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=size, allow_extra_data=False)
