"""Time and randomness, injected.

Owns the one seam through which the hub reads clocks and draws random numbers; nothing else calls
``time``, ``uuid`` or ``secrets`` directly, so tests can run on virtual time. Below every layer:
imports nothing of ours.
"""

import datetime as dt
import os
import secrets
import time
from typing import Protocol


class Clock(Protocol):
    """Where time, uids and random bytes come from."""

    def now(self) -> dt.datetime:
        """Return the wall clock, timezone-aware, in UTC."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never goes back; only differences mean anything."""
        ...

    def uid(self) -> str:
        """Return a fresh version 4 UUID in its canonical text form."""
        ...

    def token(self, n_bytes: int) -> bytes:
        """Return `n_bytes` of cryptographic randomness."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> dt.datetime:
        """Return the wall clock in UTC."""
        return dt.datetime.now(dt.UTC)

    def monotonic_s(self) -> float:
        """Return the machine's monotonic clock in seconds."""
        return time.monotonic()

    def uid(self) -> str:
        """Return a fresh version 4 UUID; every request takes one, so not by way of `uuid.UUID`."""
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def token(self, n_bytes: int) -> bytes:
        """Return `n_bytes` from the system's random source."""
        return secrets.token_bytes(n_bytes)
