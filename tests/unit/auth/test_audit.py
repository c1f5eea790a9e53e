"""Audit records and the thread that writes them."""

import datetime as dt
import gzip
import json
import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hub.auth.audit import (
    Entry,
    Record,
    authentication_trouble,
    shorten_agent,
    source_ips,
)
from hub.auth.auditlog import AuditLog, Counts
from hub.auth.user import Attributes, User
from hub.meta import Obj

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
POST = Attributes("create", "", "v1", "configmaps", namespace="ns")


def entry(asked: Attributes | None = POST, *, audit_id: str = "id") -> Entry:
    verb = asked.verb if asked is not None else "get"
    return Entry(
        audit_id=audit_id,
        method="POST",
        uri="/x",
        received=NOW,
        source_ips=("127.0.0.1",),
        user_agent="",
        verb=verb,
        asked=asked,
        user=User("u", ("g",)),
    )


def rendered(record: Record) -> Obj:
    line = record.render()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


class Counter:
    """Counts from the writer's thread; `wait` until so many were told."""

    def __init__(self) -> None:
        self.written = self.lost = 0
        self._told = threading.Condition()

    def counts(self) -> Counts:
        return Counts(self._add_written, self._add_lost)

    def _add_written(self, count: int) -> None:
        with self._told:
            self.written += count
            self._told.notify_all()

    def _add_lost(self, count: int) -> None:
        with self._told:
            self.lost += count
            self._told.notify_all()

    def wait(self, *, written: int = 0, lost: int = 0) -> None:
        with self._told:
            assert self._told.wait_for(
                lambda: self.written >= written and self.lost >= lost, timeout=10
            )


@pytest.fixture
def counter() -> Counter:
    return Counter()


# -------------------------------------------------------------------- records


def test_a_record_tells_times_to_the_microsecond() -> None:
    later = NOW + dt.timedelta(seconds=1)
    found = rendered(Record(entry(), "ResponseComplete", later, 200))
    assert found["requestReceivedTimestamp"] == "2026-01-02T03:04:05.678901Z"
    assert found["stageTimestamp"] == "2026-01-02T03:04:06.678901Z"
    assert found["user"] == {"username": "u", "groups": ["g"]}
    assert "annotations" not in found


@pytest.mark.parametrize(
    ("code", "body", "name"),
    [
        (201, b'{"kind":"ConfigMap","metadata":{"name":"a","uid":"7"},"data":{"x":"y"}}', "a"),
        (201, gzip.compress(b'{"metadata":{"name":"a"}}', mtime=0), "a"),
        (201, b'{"metadata":{}}', None),
        (201, b'{"metadata":null}', None),
        (201, b"not json", None),
        (200, b'{"metadata":{"name":"a"}}', None),
    ],
)
def test_a_created_object_is_named_by_the_answer(code: int, body: bytes, name: str | None) -> None:
    found = rendered(Record(entry(), "ResponseComplete", NOW, code, body))
    assert found["objectRef"].get("name") == name


def test_an_error_is_told_without_its_envelope() -> None:
    status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    status |= {"message": "m", "reason": "r", "details": {"name": "x"}, "code": 404}
    body = json.dumps(status).encode()
    found = rendered(Record(entry(), "ResponseComplete", NOW, 404, body))
    assert found["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "m",
        "reason": "r",
        "details": {"name": "x"},
        "code": 404,
    }
    plain = rendered(Record(entry(), "ResponseComplete", NOW, 404, b"oops"))
    assert plain["responseStatus"] == {"metadata": {}, "code": 404}


def test_a_path_that_means_nothing_has_no_reference() -> None:
    assert "objectRef" not in rendered(Record(entry(None), "ResponseComplete", NOW, 400))


@pytest.mark.parametrize(
    ("headers", "remote", "found"),
    [
        ({}, "127.0.0.1:7", ("127.0.0.1",)),
        ({}, "[::1]:7", ("::1",)),
        ({"x-forwarded-for": "127.0.0.1"}, "127.0.0.1:7", ("127.0.0.1",)),
        (
            {"x-forwarded-for": "10.0.0.1, 10.0.0.2"},
            "127.0.0.1:7",
            ("10.0.0.1", "10.0.0.2", "127.0.0.1"),
        ),
        ({"x-real-ip": "nonsense"}, "127.0.0.1:7", ("127.0.0.1",)),
        ({}, "", ()),
    ],
)
def test_sources_end_with_the_peer(
    headers: dict[str, str], remote: str, found: tuple[str, ...]
) -> None:
    assert source_ips(headers, remote) == found


@pytest.mark.parametrize(
    ("authorization", "has_certificate", "text"),
    [
        ("Bearer secret", False, "Authentication failed, attempted: bearer"),
        ("basic secret", True, "Authentication failed, attempted: basic, x509"),
        (None, True, "Authentication failed, attempted: x509"),
        ("Bearer", False, "Authentication failed, no credentials provided"),
        (None, False, "Authentication failed, no credentials provided"),
    ],
)
def test_failed_credentials_are_named_and_not_shown(
    authorization: str | None, has_certificate: bool, text: str
) -> None:
    assert authentication_trouble(authorization, has_certificate=has_certificate) == text


def test_a_long_user_agent_is_cut() -> None:
    assert shorten_agent("x" * 1024) == "x" * 1024
    assert shorten_agent("x" * 1025) == "x" * 1024 + "...TRUNCATED"


# -------------------------------------------------------------------- the log


def record(audit_id: str) -> Record:
    return Record(entry(audit_id=audit_id), "ResponseComplete", NOW, 200)


def ids(path: Path) -> list[str]:
    return [json.loads(line)["auditID"] for line in path.read_text().splitlines() if line]


def test_records_come_out_whole_and_in_order(tmp_path: Path, counter: Counter) -> None:
    path = tmp_path / "log"
    path.write_text("before\n")
    log = AuditLog(str(path), counter.counts(), linger_s=0)
    for number in range(2000):
        log.put(record(str(number)))
    log.close()
    before, *lines = path.read_text().splitlines()
    assert before == "before"
    assert [json.loads(line)["auditID"] for line in lines] == [str(n) for n in range(2000)]
    assert (counter.written, counter.lost) == (2000, 0)


def test_a_log_that_was_moved_or_removed_is_made_anew(tmp_path: Path, counter: Counter) -> None:
    path, old = tmp_path / "log", tmp_path / "old"
    log = AuditLog(str(path), counter.counts(), linger_s=0)
    log.put(record("1"))
    counter.wait(written=1)
    path.rename(old)
    log.put(record("2"))
    counter.wait(written=2)
    path.unlink()
    log.put(record("3"))
    log.close()
    assert (ids(old), ids(path)) == (["1"], ["3"])
    assert path.stat().st_mode & 0o777 == 0o600


def test_records_gather_before_they_are_written_and_a_close_does_not_wait(
    tmp_path: Path, counter: Counter
) -> None:
    path = tmp_path / "log"
    log = AuditLog(str(path), counter.counts(), linger_s=60)
    log.put(record("1"))
    assert path.read_text() == ""
    log.close()
    assert ids(path) == ["1"]


def test_standard_output_is_a_target(counter: Counter, capfd: pytest.CaptureFixture[str]) -> None:
    log = AuditLog("-", counter.counts())
    log.put(record("1"))
    log.close()
    assert json.loads(capfd.readouterr().out)["auditID"] == "1"
    os.fstat(1)  # still open


@pytest.fixture
def small_files() -> Iterator[int]:
    """No file may grow beyond so many bytes: a write is cut short, and the next fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_volume_costs_records_and_nothing_else(
    tmp_path: Path, counter: Counter, small_files: int
) -> None:
    path = tmp_path / "log"
    log = AuditLog(str(path), counter.counts(), linger_s=0)
    size = len(record("0").render())
    fitting = small_files // size
    for number in range(fitting):
        log.put(record(str(number)))
        counter.wait(written=number + 1)
    log.put(record("x"))
    counter.wait(lost=1)
    assert path.stat().st_size == small_files
    with path.open("r+b") as file:
        file.truncate(small_files - size // 2)
    log.put(record("y"))
    counter.wait(lost=2)
    with path.open("r+b") as file:
        file.truncate(size + 10)
    log.put(record("z"))
    log.close()
    first, torn, last = path.read_text().splitlines()
    assert json.loads(first)["auditID"] == "0"
    with pytest.raises(json.JSONDecodeError):
        json.loads(torn)
    assert json.loads(last)["auditID"] == "z"
    assert (counter.written, counter.lost) == (fitting + 1, 2)


def test_a_reader_that_does_not_read_holds_nobody_up(tmp_path: Path, counter: Counter) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = AuditLog(str(path), counter.counts(), max_waiting=100, linger_s=0)
    for number in range(5000):
        log.put(record(str(number)))
    assert counter.lost > 0
    log.close(timeout_s=0.01)  # does not wait for the pipe
    os.set_blocking(reader, True)
    seen = b""
    while seen.count(b"\n") < 5000 - counter.lost:
        seen += os.read(reader, 65536)
    os.close(reader)
    assert json.loads(seen.split(b"\n")[0])["auditID"] == "0"


def test_a_record_that_cannot_be_written_as_json_is_lost_alone(
    tmp_path: Path, counter: Counter
) -> None:
    path = tmp_path / "log"
    log = AuditLog(str(path), counter.counts(), linger_s=0)
    log.put(record("\ud800"))
    counter.wait(lost=1)
    log.put(record("1"))
    log.close()
    assert ids(path) == ["1"]
