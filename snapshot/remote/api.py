"""What an object store must do for us: whole objects, create-only writes, compare-and-swap.

Owns the seam between the chain and the bucket. `tests/contract/remote_suite.py` is this contract
as a test.

Invariants every implementation keeps:
- an object is seen whole or not at all, and once a put returned it is durable and seen by every
  later get and list;
- of any number of concurrent `put_if_absent` on one name, or `put_if_match` on one etag, exactly
  one returns;
- a refused condition (`ObjectExists`, `PreconditionFailed`, `ObjectMissing`) is never confused with
  "no answer" (`RemoteUnavailable`). The one exception: after a lost answer the retry may meet the
  write's own effect, so whoever needs to know looks for its own nonce.

Names are relative to the prefix and ``/``-separated; no part is empty or begins with a dot.
"""

import contextlib
import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from snapshot.errors import RemoteInvalid

Source: TypeAlias = bytes | Path
"""What a put sends: bytes in memory, or the whole of a file, streamed."""

_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Blob:
    """A small object read whole, with the etag that a `put_if_match` may name."""

    data: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What the store says about an object. `modified` is the store's clock, in UTC."""

    name: str
    size: int
    modified: dt.datetime


class Remote(Protocol):
    """One prefix of an object store, safe for threads.

    Any method may raise `RemoteUnavailable` or `RemoteDenied`.
    """

    @property
    def url(self) -> str:
        """The prefix as the user named it, without secrets."""
        ...

    def get(self, name: str) -> Blob:
        """Read a small object (HEAD, JSON) whole; `ObjectMissing` if there is none."""
        ...

    def get_to_file(self, name: str, path: Path) -> int:
        """Stream an object into a new file and return its size; an error leaves no file."""
        ...

    def put_if_absent(self, name: str, source: Source) -> str:
        """Create an object and return its etag; `ObjectExists` if there is one."""
        ...

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        """Replace the object that has `etag` and return the new etag.

        `PreconditionFailed`: there is another one. `ObjectMissing`: there is none (none is made).
        """
        ...

    def head(self, name: str) -> Entry:
        """Return what is known of one object; `ObjectMissing` if there is none."""
        ...

    def list(self, under: str = "") -> Iterator[Entry]:
        """Yield every object whose name starts with `under`, in order of name."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object; none of that name is fine."""
        ...

    def close(self) -> None:
        """Give connections back. Idempotent."""
        ...


def check_name(name: str) -> str:
    """Return `name` if it is a proper object name, else raise `RemoteInvalid`.

    >>> check_name("e00000001/full/7-1-0a0a0a0a.hs")
    'e00000001/full/7-1-0a0a0a0a.hs'
    """
    if not all(_PART.fullmatch(part) for part in name.split("/")):
        raise RemoteInvalid(f"{name!r} is not an object name", op="name")
    return name


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file that was not there before, and is not there afterwards if the block fails."""
    with path.open("xb") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise
