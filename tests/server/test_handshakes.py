"""Certificates that are no good: the alert that a client reads, and what is counted."""

import asyncio
import contextlib
import datetime as dt
import re
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from hub.auth.certificates import mint_client
from hub.auth.identity import HubIdentity
from hub.clock import SystemClock
from hub.http.tally import Handshake
from hub.http.tls import client_context
from hub.registry.keeping import load_identity
from hub.store import STORE_DIRECTORY, Store, load_hub_key
from tests.hubs import InProcess, running_hub
from tests.server.support import cluster_access, dial
from tests.unit.http.pki import Authority, Pem

pytestmark = pytest.mark.asyncio(loop_scope="module")
REQUEST = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@dataclass(frozen=True, slots=True)
class Known:
    """A running hub, and its identity."""

    hub: InProcess
    identity: HubIdentity

    def minted(self, *, days_ago: int = 0) -> Pem:
        """Return a client certificate of the hub's own CA, as issued a while ago for a year."""
        began = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
        pair = mint_client("agent", ["group"], self.identity.client_ca, now=began)
        return Pem(pair.cert_pem.encode(), pair.key_pem.encode())

    def forged(self) -> Pem:
        """Return one of another CA that goes by the name of the hub's."""
        name = self.identity.client_ca.certificate().subject.rfc4514_string()
        return Authority(name.removeprefix("CN=")).client([("CN", "agent")])

    def serving(self) -> Pem:
        """Return the hub's own serving certificate."""
        leaf = self.identity.leaf
        return Pem(leaf.cert_pem.encode(), leaf.key_pem.encode())

    async def failures(self) -> dict[str, int]:
        page = (await self.hub.admin.call("GET", "/metrics")).body.decode()
        line = r'^hublet_handshake_failures_total{reason="(\w+)"} (\S+)$'
        found = re.findall(line, page, re.MULTILINE)
        return {reason: int(float(count)) for reason, count in found}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def known(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Known]:
    data = tmp_path_factory.mktemp("hub") / "data"
    async with running_hub(data):
        pass
    key = load_hub_key(data.with_name("data.key"))
    store = Store.open(data / STORE_DIRECTORY, hub_key=key, clock=SystemClock())
    identity = load_identity(store)
    await store.close()
    assert identity is not None
    async with running_hub(data) as hub:
        yield Known(hub, identity)


def ask(hub: InProcess, tls: ssl.SSLContext) -> bytes:
    with dial(hub, tls) as sock:
        sock.sendall(REQUEST)
        return sock.recv(65_536)


def alert_for(hub: InProcess, pem: Pem, version: ssl.TLSVersion) -> str:
    """Show a certificate, ask at once, and return which alert comes back.

    In TLS 1.3 the client has finished its handshake, and sent its request, before it is refused.
    """
    tls = client_context(cluster_access(hub)[1], pem.cert, pem.key, http2=False)
    tls.minimum_version = tls.maximum_version = version
    with pytest.raises(ssl.SSLError) as refused:
        ask(hub, tls)
    found = re.search(r"ALERT_(\w+)$", refused.value.reason)
    assert found is not None, refused.value
    return found[1]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_certificate_of_the_hub_opens_a_connection(
    known: Known, version: ssl.TLSVersion
) -> None:
    pem = known.minted(days_ago=300)
    tls = client_context(cluster_access(known.hub)[1], pem.cert, pem.key, http2=False)
    tls.minimum_version = tls.maximum_version = version
    answer = await asyncio.to_thread(ask, known.hub, tls)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kind", "alert", "reason"),
    [
        ("expired", "CERTIFICATE_EXPIRED", Handshake.EXPIRED),
        ("early", "BAD_CERTIFICATE", Handshake.EXPIRED),
        ("foreign", "UNKNOWN_CA", Handshake.UNKNOWN_CA),
        ("forged", "DECRYPT_ERROR", Handshake.BAD_CERTIFICATE),
        ("serving", "UNKNOWN_CA", Handshake.UNKNOWN_CA),
    ],
)
async def test_a_certificate_that_is_no_good_is_answered_with_its_alert_and_counted(
    known: Known, version: ssl.TLSVersion, kind: str, alert: str, reason: Handshake
) -> None:
    pems = {
        "expired": lambda: known.minted(days_ago=400),
        "early": lambda: known.minted(days_ago=-30),
        "foreign": lambda: Authority("another").client([("CN", "stranger")]),
        "forged": known.forged,
        "serving": known.serving,
    }
    before = await known.failures()
    assert await asyncio.to_thread(alert_for, known.hub, pems[kind](), version) == alert
    assert await known.failures() == {**before, reason: before[reason] + 1}
    assert (await known.hub.admin.call("GET", "/version")).status == 200


async def test_what_is_no_tls_and_who_hangs_up_are_counted(known: Known) -> None:
    parts = urlsplit(known.hub.url)

    def send(data: bytes) -> bytes:
        answer = b""
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
            sock.sendall(data)
            with contextlib.suppress(ConnectionResetError):
                while piece := sock.recv(65_536):
                    answer += piece
        return answer

    before = await known.failures()
    with socket.create_connection((parts.hostname, parts.port), timeout=10):
        pass
    assert await asyncio.to_thread(send, REQUEST) == (
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    )
    await asyncio.to_thread(send, b"\x00" * 500)
    expected = {"closed": before["closed"] + 1, "not_tls": before["not_tls"] + 2}
    assert await known.failures() == {**before, **expected}


async def test_a_client_that_does_not_trust_the_hub_is_counted(known: Known) -> None:
    tls = client_context(Authority("another").cert, http2=False)
    before = await known.failures()
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.to_thread(dial, known.hub, tls)
    assert await known.failures() == {**before, "refused": before["refused"] + 1}


async def test_no_common_version_is_counted(known: Known) -> None:
    tls = client_context(cluster_access(known.hub)[1], http2=False)
    tls.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    before = await known.failures()
    tls.set_ciphers("AES128-GCM-SHA256")
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(dial, known.hub, tls)
    assert await known.failures() == {**before, "other": before["other"] + 1}
