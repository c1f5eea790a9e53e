"""What goes over the wire to an S3 server, and what is done about its refusals.

A small server on loopback records requests and answers by script; it keeps no objects.
"""

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from snapshot.errors import RemoteDenied, RemoteUnavailable
from snapshot.remote import Remote
from snapshot.remote.s3 import S3Options, S3Remote

_STALE = (
    (400, "ExpiredToken"),
    (400, "ExpiredTokenException"),
    (400, "InvalidToken"),
    (400, "TokenRefreshRequired"),
    (403, "InvalidAccessKeyId"),
    (403, "RequestTimeTooSkewed"),
    (403, "SignatureDoesNotMatch"),
)
_PAGE = (
    "<ListBucketResult><Name>b</Name><IsTruncated>{more}</IsTruncated>"
    "<NextContinuationToken>{token}</NextContinuationToken><Contents><Key>p/{name}</Key>"
    "<Size>1</Size><LastModified>2026-05-04T03:02:01.000Z</LastModified></Contents>"
    "</ListBucketResult>"
)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def access_key(self) -> str:
        return self.headers["authorization"].split("Credential=")[1].split("/")[0]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    length: int | None = None
    """A Content-Length other than the body's."""
    hangs: bool = False


def refusal(status: int, code: str) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())


Script = Callable[[Request], Answer]


@dataclass
class Recorder:
    """What was asked, and what is answered: the next of `answers`, then what `script` says."""

    answers: list[Answer] = field(default_factory=list)
    script: Script = lambda _: Answer()
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    endpoint: str = ""

    def take(self, request: Request) -> Answer:
        with self.lock:
            self.requests.append(request)
            return self.answers.pop(0) if self.answers else self.script(request)


def handler(recorder: Recorder) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = recorder.take(Request(self.command, self.path, headers, body))
            if answer.hangs:
                recorder.ended.wait()
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("ETag", '"e"')
            self.send_header("Last-Modified", "Mon, 04 May 2026 03:02:01 GMT")
            is_head = self.command == "HEAD"
            length = len(answer.body) if answer.length is None else answer.length
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(b"" if is_head else answer.body)
            self.close_connection = answer.length is not None

        do_GET = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815  the base's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
            """Say nothing."""

    return Handler


@pytest.fixture
def server() -> Iterator[Recorder]:
    recorder = Recorder()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(recorder)) as listening:
        listening.daemon_threads = True
        recorder.endpoint = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield recorder
        finally:
            recorder.ended.set()
            listening.shutdown()
            thread.join()


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the shared credentials file, the only place where credentials are."""
    path = tmp_path / "credentials"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    def write(access_key: str) -> None:
        path.write_text(
            f"[default]\naws_access_key_id = {access_key}\naws_secret_access_key = secret\n"
        )

    write("old")
    return write


@contextlib.contextmanager
def s3(
    server: Recorder,
    *,
    attempts: int = 1,
    timeout_s: float = 20.0,
    pauses: list[float] | None = None,
) -> Iterator[Remote]:
    options = S3Options("b", "p", endpoint=server.endpoint, attempts=attempts, timeout_s=timeout_s)
    remote = S3Remote(options, pause=([] if pauses is None else pauses).append)
    with contextlib.closing(remote):
        yield remote


def only_new(request: Request) -> Answer:
    return Answer() if request.access_key == "new" else refusal(403, "InvalidAccessKeyId")


@pytest.mark.parametrize(("status", "code"), _STALE)
def test_refused_credentials_are_read_again_and_the_request_is_repeated_once(
    server: Recorder, credentials: Callable[[str], None], status: int, code: str
) -> None:
    server.answers = [refusal(status, code)]
    with s3(server) as remote:
        credentials("new")
        assert remote.put_if_absent("HEAD", b"1") == '"e"'
        remote.get("HEAD")
    assert [request.access_key for request in server.requests] == ["old", "new", "new"]
    assert [request.body for request in server.requests] == [b"1", b"1", b""]


@pytest.mark.parametrize(("status", "code"), _STALE)
def test_credentials_that_stay_refused_are_an_error_after_one_more_try(
    server: Recorder, credentials: Callable[[str], None], status: int, code: str
) -> None:
    server.script = lambda _: refusal(status, code)
    with s3(server) as remote, pytest.raises(RemoteDenied, match=code):
        remote.put_if_match("HEAD", b"1", etag="e")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "use",
    [
        lambda remote, _: remote.get("x"),
        lambda remote, scratch: remote.get_to_file("x", scratch / "down"),
        lambda remote, scratch: remote.put_if_absent("x", scratch / "up"),
        lambda remote, _: remote.put_if_match("x", b"1", etag="e"),
        lambda remote, _: remote.head("x"),
        lambda remote, _: remote.delete("x"),
    ],
    ids=["get", "get_to_file", "put_if_absent", "put_if_match", "head", "delete"],
)
def test_every_request_survives_a_rotation(
    server: Recorder,
    credentials: Callable[[str], None],
    tmp_path: Path,
    use: Callable[[Remote, Path], object],
) -> None:
    (tmp_path / "up").write_bytes(b"1" * 3_000_000)
    server.script = only_new
    with s3(server) as remote:
        credentials("new")
        use(remote, tmp_path)
    assert [request.access_key for request in server.requests] == ["old", "new"]
    assert server.requests[0].body == server.requests[1].body


def test_a_rotation_in_the_middle_of_a_list_leaves_nothing_out(
    server: Recorder, credentials: Callable[[str], None]
) -> None:
    def page(name: str, *, more: str, token: str) -> Answer:
        return Answer(body=_PAGE.format(name=name, more=more, token=token).encode())

    server.answers = [
        page("a", more="true", token="t1"),
        refusal(400, "ExpiredToken"),
        page("b", more="true", token="t2"),
        page("c", more="false", token=""),
    ]
    with s3(server) as remote:
        credentials("new")
        assert [entry.name for entry in remote.list()] == ["a", "b", "c"]
    assert [request.access_key for request in server.requests] == ["old", "old", "new", "new"]
    assert "continuation-token=t1" in server.requests[2].path
    assert "continuation-token=t2" in server.requests[3].path


def test_threads_that_meet_a_rotation_share_one_new_client(
    server: Recorder, credentials: Callable[[str], None]
) -> None:
    server.script = only_new
    with s3(server) as remote, ThreadPoolExecutor(8) as pool:
        assert isinstance(remote, S3Remote)
        credentials("new")
        list(pool.map(lambda n: remote.put_if_absent(f"x{n}", b"1"), range(40)))
        renewed = remote._client
        list(pool.map(lambda n: remote.get(f"x{n}"), range(8)))
        assert remote._client is renewed
    taken = [request for request in server.requests if request.access_key == "new"]
    assert len({request.path for request in taken}) == 40
    assert len(taken) == 48
    assert len(server.requests) - len(taken) <= 8  # each thread meets it once at most


def test_credentials_that_come_after_the_start_are_found(
    server: Recorder, credentials: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "credentials").unlink()
    with s3(server) as remote:
        with pytest.raises(RemoteDenied, match="credentials"):
            remote.get("x")
        credentials("new")
        remote.get("x")
    assert [request.access_key for request in server.requests] == ["new"]


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (404, "NoSuchKey")])
def test_other_refusals_are_not_repeated(
    server: Recorder, credentials: Callable[[str], None], status: int, code: str
) -> None:
    server.script = lambda _: refusal(status, code)
    with s3(server, attempts=4) as remote, pytest.raises(Exception, match=r"."):
        remote.get("x")
    assert len(server.requests) == 1


def test_a_server_that_hangs_is_given_up_after_its_attempts(
    server: Recorder, credentials: Callable[[str], None]
) -> None:
    server.script = lambda _: Answer(hangs=True)
    with s3(server, attempts=2, timeout_s=0.2) as remote, pytest.raises(RemoteUnavailable):
        remote.put_if_absent("x", b"1")
    assert [request.method for request in server.requests] == ["PUT", "PUT"]


def test_slow_down_is_tried_again(server: Recorder, credentials: Callable[[str], None]) -> None:
    server.answers = [refusal(503, "SlowDown")]
    with s3(server, attempts=2) as remote:
        assert remote.put_if_absent("x", b"1") == '"e"'
    assert [request.body for request in server.requests] == [b"1", b"1"]


def test_slow_down_without_an_end_is_no_answer(
    server: Recorder, credentials: Callable[[str], None]
) -> None:
    server.script = lambda _: refusal(503, "SlowDown")
    with s3(server, attempts=2) as remote, pytest.raises(RemoteUnavailable):
        remote.put_if_match("x", b"1", etag="e")
    assert len(server.requests) == 2


def test_two_conditional_writes_that_met_are_tried_again_ever_more_rarely(
    server: Recorder, credentials: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "up").write_bytes(b"12345")
    server.answers = [refusal(409, "ConditionalRequestConflict")] * 3
    pauses: list[float] = []
    with s3(server, pauses=pauses) as remote:
        assert remote.put_if_absent("x", tmp_path / "up") == '"e"'
    assert [request.body for request in server.requests] == [b"12345"] * 4
    assert [request.headers["if-none-match"] for request in server.requests] == ["*"] * 4
    assert [0.05 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(pauses)] == [True] * 3


def test_a_conflict_without_an_end_is_no_answer(
    server: Recorder, credentials: Callable[[str], None]
) -> None:
    server.script = lambda _: refusal(409, "ConditionalRequestConflict")
    with s3(server) as remote, pytest.raises(RemoteUnavailable):
        remote.put_if_match("x", b"1", etag="e")
    assert len(server.requests) == 6


@pytest.mark.parametrize("is_file", [False, True])
def test_a_custom_endpoint_gets_plain_bodies_with_an_md5(
    server: Recorder, credentials: Callable[[str], None], tmp_path: Path, is_file: bool
) -> None:
    (tmp_path / "up").write_bytes(b"12345")
    with s3(server) as remote:
        remote.put_if_absent("x", tmp_path / "up" if is_file else b"12345")
    (request,) = server.requests
    assert request.body == b"12345"
    assert request.headers["content-md5"] == "gnzLDuqKcGxMNKFokfhOew=="
    assert request.headers["content-length"] == "5"
    assert "content-encoding" not in request.headers
    assert "transfer-encoding" not in request.headers
    named = {name for name in request.headers if "checksum" in name or "trailer" in name}
    assert named == set()
    assert "STREAMING" not in request.headers["x-amz-content-sha256"]


@pytest.mark.parametrize("sent", [0, 3])
def test_a_body_cut_short_is_no_answer_and_leaves_no_file(
    server: Recorder, credentials: Callable[[str], None], tmp_path: Path, sent: int
) -> None:
    server.script = lambda _: Answer(body=b"12345"[:sent], length=5)
    with s3(server) as remote:
        with pytest.raises(RemoteUnavailable):
            remote.get_to_file("x", tmp_path / "down")
        assert not (tmp_path / "down").exists()
        with pytest.raises(RemoteUnavailable):
            remote.get("x")
