"""Errors of object stores name the store and say what to do: no S3 server, no CA, no directory."""

import contextlib
import datetime as dt
import http.server
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hub.auth.authority import create_authority, issue_serving_leaf
from hub.auth.keypair import new_private_key
from snapshot.errors import (
    ObjectMissing,
    RemoteDenied,
    RemoteError,
    RemoteInvalid,
    RemoteUnavailable,
)
from snapshot.remote import Remote, open_remote

ROOT = Path(__file__).resolve().parents[3]


class WebServer(http.server.BaseHTTPRequestHandler):
    """A web server as there are many: a page for `/page/...`, 404 else, no PUT."""

    def do_GET(self) -> None:
        is_page = self.path.startswith("/page")
        body = b"<html><body>welcome</body></html>"
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base's name
        """Say nothing."""


@contextlib.contextmanager
def web_server(tls: ssl.SSLContext | None = None) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), WebServer) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "who")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "what")


@contextlib.contextmanager
def s3_at(endpoint: str, *, bucket: str = "b", more: str = "") -> Iterator[Remote]:
    url = f"s3://{bucket}/p?endpoint={endpoint}&attempts=1{more}"
    remote = open_remote(url, environ={})
    with contextlib.closing(remote):
        yield remote


@pytest.mark.parametrize("bucket", ["b", "page"])
@pytest.mark.parametrize(
    "use",
    [
        lambda remote: remote.get("HEAD"),
        lambda remote: list(remote.list()),
        lambda remote: remote.put_if_absent("HEAD", b"1"),
    ],
    ids=["get", "list", "put"],
)
def test_a_plain_web_server_is_told_from_an_empty_prefix(
    use: Callable[[Remote], object], bucket: str
) -> None:
    with web_server() as endpoint, s3_at(endpoint, bucket=bucket) as remote:
        with pytest.raises(RemoteError) as caught:
            use(remote)
        assert not isinstance(caught.value, ObjectMissing | RemoteUnavailable)
        assert f"s3://{bucket}/p/" in str(caught.value)
        assert endpoint in str(caught.value)
        assert "must be an S3 server" in caught.value.hint
        assert "HUBLET_S3_ENDPOINT" in caught.value.hint


def test_a_certificate_of_another_ca_is_an_error_whose_hint_names_ca_file(tmp_path: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    leaf = issue_serving_leaf(
        create_authority("theirs", now), new_private_key(), names=["127.0.0.1"], now=now
    )
    (tmp_path / "leaf.pem").write_text(leaf.cert_pem + leaf.key_pem)
    (tmp_path / "ca.pem").write_text(create_authority("ours", now).cert_pem)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "leaf.pem")
    with (
        web_server(tls) as endpoint,
        s3_at(endpoint, more=f"&ca_file={tmp_path / 'ca.pem'}") as remote,
        pytest.raises(RemoteUnavailable, match="CERTIFICATE_VERIFY_FAILED") as caught,
    ):
        remote.get("HEAD")
    assert "ca_file= in the URL or HUBLET_S3_CA_FILE" in caught.value.hint
    assert f"(s3://b/p/HEAD at {endpoint})" in str(caught.value)


def test_a_directory_that_cannot_be_made_is_no_missing_object() -> None:
    with pytest.raises(RemoteDenied) as caught:
        open_remote("file:///proc/zz").put_if_absent("HEAD", b"1")
    assert "file:///proc/zz" in str(caught.value)
    assert "a local disk: file:///dir" in caught.value.hint


def test_a_file_is_no_object_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RemoteUnavailable, match="it is a file, not a directory") as caught:
        open_remote((tmp_path / "file").as_uri())
    assert "file:// needs a directory" in caught.value.hint
    assert (tmp_path / "file").as_uri() in str(caught.value)


def test_an_error_of_a_directory_names_the_object_by_its_url(tmp_path: Path) -> None:
    with pytest.raises(ObjectMissing) as caught:
        open_remote(tmp_path.as_uri()).get("HEAD")
    assert f"({tmp_path.as_uri()}/HEAD)" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://me:hush@x/y", "s3://me:hush@b/p", "s3://b/p?endpoint=https://me:hush@x"]
)
def test_no_password_of_a_url_is_repeated(url: str) -> None:
    with pytest.raises(RemoteInvalid) as caught:
        open_remote(url, environ={})
    assert "hush" not in str(caught.value)


_PROBE = """
import sys
from snapshot.remote import open_remote
from tools.logs import configure_logs
configure_logs(sys.argv[1])
open_remote("s3://b/p?endpoint=http://127.0.0.1:9", environ={})
"""


@pytest.mark.parametrize("level", ["debug", "info"])
def test_the_s3_library_says_nothing_of_credentials(level: str) -> None:
    command = [sys.executable, "-c", _PROBE, level]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
