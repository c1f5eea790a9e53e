"""A remote that can be ended: who works through many objects stops at the next one.

Owns that refusal and nothing else. Tending may be in the middle of thousands of requests, or of a
probe that a slow bucket draws out, when the hub is told to stop; all of it may be broken off.
"""

from collections.abc import Iterator
from pathlib import Path

from snapshot.errors import RemoteUnavailable
from snapshot.remote import Blob, Entry, Remote, Source


class Ending:
    """`Remote` in front of another; after `end` it refuses everything, as a bucket that is away."""

    def __init__(self, remote: Remote) -> None:
        self._remote, self._is_ended = remote, False

    def end(self) -> None:
        """Refuse whatever comes from here on; for any thread."""
        self._is_ended = True

    @property
    def url(self) -> str:
        """Return the prefix."""
        return self._remote.url

    def get(self, name: str) -> Blob:
        """Pass it on."""
        return self._open("get", name).get(name)

    def get_to_file(self, name: str, path: Path) -> int:
        """Pass it on."""
        return self._open("get", name).get_to_file(name, path)

    def put_if_absent(self, name: str, source: Source) -> str:
        """Pass it on."""
        return self._open("put", name).put_if_absent(name, source)

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        """Pass it on."""
        return self._open("put", name).put_if_match(name, source, etag=etag)

    def head(self, name: str) -> Entry:
        """Pass it on."""
        return self._open("head", name).head(name)

    def list(self, under: str = "") -> Iterator[Entry]:
        """Pass it on; a long list ends between two entries."""
        for entry in self._open("list", under).list(under):
            self._open("list", under)
            yield entry

    def delete(self, name: str) -> None:
        """Pass it on."""
        self._open("delete", name).delete(name)

    def close(self) -> None:
        """Do nothing: the one behind belongs to whoever made it."""

    def _open(self, op: str, name: str) -> Remote:
        if self._is_ended:
            raise RemoteUnavailable("the hub is stopping", op=op, object=name)
        return self._remote
