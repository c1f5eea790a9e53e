"""The audit log: records written as JSON lines by a thread of its own.

The event loop hands over and goes on: it never waits for a disk or a pipe. When the file cannot
take the lines (a full volume, a reader that does not read) they are counted as lost; the hub serves
on. A file that was moved away or removed (log rotation) is made anew at the next line.
"""

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import structlog

from hub.auth.audit import Record

_log = structlog.get_logger("hub.audit")
STDOUT = "-"
MAX_WAITING = 50_000
"""Records that may wait for the disk; a minute of a busy hub."""
LINGER_S = 0.1
"""How long the writer lets records gather: to wake it for each would double a request's cost."""
_BATCH = 512
_SLICE = 16
"""How many records are rendered before the event loop may have the interpreter back."""
_CLOSE_S = 5.0

Count: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Counts:
    """Told how many records were written, and how many were lost; from any thread."""

    written: Count
    lost: Count


class AuditLog:
    """Takes records on the loop's thread, writes them on another.

    `target` is a path, or ``-`` for standard output. Raises OSError when it cannot be opened.
    """

    def __init__(
        self,
        target: str,
        counts: Counts,
        *,
        max_waiting: int = MAX_WAITING,
        linger_s: float = LINGER_S,
    ) -> None:
        self._counts, self._max_waiting, self._linger_s = counts, max_waiting, linger_s
        self._is_closing = threading.Event()
        self._file, self._is_failing = _File(target), False
        self._waiting: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def put(self, record: Record) -> None:
        """Have a record written; never waits."""
        if self._waiting.qsize() >= self._max_waiting:
            self._counts.lost(1)
        else:
            self._waiting.put(record)

    def close(self, timeout_s: float = _CLOSE_S) -> None:
        """Write what waits, at most for `timeout_s`, and end the thread."""
        self._waiting.put(None)
        self._is_closing.set()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._file.close()

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._take()
            if batch:
                self._write(batch)

    def _take(self) -> tuple[list[Record], bool]:
        """Wait for records; return those there are, and whether more may come."""
        batch: list[Record] = []
        record = self._waiting.get()
        if self._waiting.qsize() < _BATCH:
            self._is_closing.wait(self._linger_s)
        while record is not None:
            batch.append(record)
            if len(batch) == _BATCH:
                return batch, True
            try:
                record = self._waiting.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _write(self, batch: list[Record]) -> None:
        lines: list[bytes] = []
        for start in range(0, len(batch), _SLICE):
            rendered = (self._render(record) for record in batch[start : start + _SLICE])
            lines += [line for line in rendered if line]
            time.sleep(0)
        try:
            self._file.write(b"".join(lines))
        except OSError as error:
            self._counts.lost(len(lines))
            if not self._is_failing:
                _log.warning("audit_write_failed", error=str(error), lost=len(lines))
            self._is_failing = True
        else:
            self._counts.written(len(lines))
            if self._is_failing:
                _log.info("audit_writes_again")
            self._is_failing = False

    def _render(self, record: Record) -> bytes:
        try:
            return record.render()
        except Exception:  # noqa: BLE001  the thread's top level: one record must not end the log
            self._counts.lost(1)
            _log.exception("audit_record_failed", audit_id=ascii(record.entry.audit_id))
            return b""


class _File:
    """The file behind the log; for one thread."""

    def __init__(self, target: str) -> None:
        self._path = None if target == STDOUT else Path(target)
        self._is_torn = False
        self._handle = 1 if self._path is None else self._open(self._path)

    @staticmethod
    def _open(path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes) -> None:
        """Append `data`, after an end of line if the last write was cut short."""
        self._follow()
        rest = memoryview(b"\n" + data if self._is_torn else data)
        while rest:
            self._is_torn = True
            rest = rest[os.write(self._handle, rest) :]
        self._is_torn = False

    def _follow(self) -> None:
        """Open the path again when it is no longer the file that is open."""
        if self._path is None:
            return
        here = os.fstat(self._handle)
        with contextlib.suppress(FileNotFoundError):
            there = self._path.stat()
            if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev):
                return
        fresh = self._open(self._path)
        os.close(self._handle)
        self._handle, self._is_torn = fresh, False

    def close(self) -> None:
        """Let go of the file."""
        if self._path is not None:
            os.close(self._handle)
