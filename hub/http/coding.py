"""Content coding of answers: gzip for large ones, when the client asks for it.

Mirrors k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: from 128 KiB on, at
level 1 (1 ms for 256 KiB, a tenth of the size).
"""

import zlib

GZIP_FROM_BYTES = 128 * 1024
GZIP_HEAD = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))
_LEVEL = 1
_GZIP_CONTAINER = 16 + zlib.MAX_WBITS


def accepts_gzip(header: str | None) -> bool:
    """Whether an Accept-Encoding header names gzip with a weight above 0.

    >>> accepts_gzip("deflate, gzip;q=0.5"), accepts_gzip("gzip;q=0"), accepts_gzip("*")
    (True, False, False)
    """
    if not header:
        return False
    for item in header.split(","):
        coding, _, parameter = item.partition(";")
        if coding.strip().lower() == "gzip":
            weight = parameter.strip().lower().removeprefix("q=").strip()
            return not weight or weight.strip("0.") != ""
    return False


class Gzip:
    """One body on its way through gzip, piece by piece."""

    __slots__ = ("_compressor",)

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_CONTAINER)

    def add(self, piece: bytes | memoryview) -> bytes:
        """Return what is ready so far, perhaps nothing."""
        return self._compressor.compress(piece)

    def end(self) -> bytes:
        """Return the rest."""
        return self._compressor.flush()


def gzip(body: bytes) -> bytes:
    """Return a whole body, compressed."""
    coder = Gzip()
    return coder.add(body) + coder.end()
