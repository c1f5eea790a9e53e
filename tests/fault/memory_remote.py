"""A bucket in memory with exact conditions, for tests that put lies in front of it."""

import datetime as dt
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from snapshot.errors import ObjectExists, ObjectMissing, PreconditionFailed
from snapshot.remote import Blob, Entry, Source
from snapshot.remote.api import check_name, new_file


@dataclass(frozen=True, slots=True)
class _Stored:
    blob: Blob
    modified: dt.datetime


class MemoryRemote:
    """`Remote` in memory. Every write has an etag of its own; `now` is the server's clock."""

    def __init__(self, now: dt.datetime = dt.datetime(2026, 5, 4, tzinfo=dt.UTC)) -> None:
        self.now = now
        self._objects: dict[str, _Stored] = {}
        self._written = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return "memory:///bucket"

    def get(self, name: str) -> Blob:
        return self._find(name, "get").blob

    def get_to_file(self, name: str, path: Path) -> int:
        data = self.get(name).data
        with new_file(path) as file:
            return file.write(data)

    def put_if_absent(self, name: str, source: Source) -> str:
        check_name(name)
        data = source if isinstance(source, bytes) else source.read_bytes()
        with self._lock:
            if name in self._objects:
                raise ObjectExists("the object exists", op="put", object=name)
            return self._store(name, data)

    def put_if_match(self, name: str, source: bytes, *, etag: str) -> str:
        with self._lock:
            if self._find(name, "put").blob.etag != etag:
                raise PreconditionFailed("another object is there", op="put", object=name)
            return self._store(name, source)

    def head(self, name: str) -> Entry:
        found = self._find(name, "head")
        return Entry(name, len(found.blob.data), found.modified)

    def list(self, under: str = "") -> Iterator[Entry]:
        with self._lock:
            found = sorted(self._objects.items())
        for name, stored in found:
            if name.startswith(under):
                yield Entry(name, len(stored.blob.data), stored.modified)

    def delete(self, name: str) -> None:
        check_name(name)
        with self._lock:
            self._objects.pop(name, None)

    def close(self) -> None:
        """Nothing is held."""

    def _find(self, name: str, op: str) -> _Stored:
        try:
            return self._objects[check_name(name)]
        except KeyError as error:
            raise ObjectMissing("no such object", op=op, object=name) from error

    def _store(self, name: str, data: bytes) -> str:
        self._written += 1
        etag = f"etag-{self._written}"
        self._objects[name] = _Stored(Blob(data, etag), self.now)
        return etag
