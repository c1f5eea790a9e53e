"""The HTTP contract, over both protocols and both HTTP/2 libraries, asked by us and by others."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
import uvloop

from hub.http.client import Client
from hub.http.limits import Limits
from hub.http.tls import client_context, server_context
from hub.http.transport import serve
from tests.contract.http_drivers import HyperDriver, OwnDriver, Urllib3Driver, run_curl
from tests.contract.http_suite import CHECKS, STREAM_CHECKS, App, Driver, Site
from tests.unit.http.pki import Authority

Library = Literal["ngh2", "h2"]
Kind = tuple[Library | None, str]
LIMITS = Limits(stall_s=0.4, sweep_s=0.1, linger_s=0.5)

OWN: list[Kind] = [
    (None, "own"),
    ("ngh2", "own-ngh2"),
    ("ngh2", "own-h2"),
    ("h2", "own-ngh2"),
    ("h2", "own-h2"),
]
OTHERS: list[Kind] = [(None, "urllib3"), ("ngh2", "hyper"), ("h2", "hyper")]


def name_kind(kind: Kind) -> str:
    library, driver = kind
    return f"{library or 'http1'}-asked-by-{driver}"


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@asynccontextmanager
async def open_site(
    authority: Authority, kind: Kind, limits: Limits = LIMITS
) -> AsyncIterator[Site]:
    library, asker = kind
    app = App()
    pem = authority.server()
    server = await serve(
        app,
        host="127.0.0.1",
        port=0,
        tls=server_context(pem.cert, pem.key, authority.cert),
        limits=limits,
        http2_codec=library or "auto",
    )
    tls = client_context(authority.cert, http2=library is not None)
    client: Client | None = None
    driver: Driver
    if asker.startswith("own"):
        asking: Library = "h2" if asker == "own-h2" else "ngh2"
        client = Client(
            "127.0.0.1", server.port, tls, http2=library is not None, http2_codec=asking
        )
        driver = OwnDriver(client)
    elif library is None:
        driver = Urllib3Driver(server.port, tls)
    else:
        driver = HyperDriver(server.port, tls)
    site = Site(server, app, authority, driver, is_http2=library is not None, client=client)
    try:
        yield site
    finally:
        await driver.close()
        for extra in site.clients:
            await extra.close()
        app.release.set()
        await server.close(2)


@pytest.mark.parametrize("kind", [*OWN, *OTHERS], ids=name_kind)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_contract_holds(
    check: Callable[[Site], Awaitable[None]], kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind) as site:
        await check(site)


@pytest.mark.parametrize("kind", OWN, ids=name_kind)
@pytest.mark.parametrize("check", STREAM_CHECKS, ids=lambda check: check.__name__)
async def test_the_contract_of_streams_holds(
    check: Callable[[Site], Awaitable[None]], kind: Kind, authority: Authority
) -> None:
    async with open_site(authority, kind) as site:
        await check(site)


@pytest.mark.parametrize("library", ["ngh2", "h2"])
async def test_another_client_is_told_to_leave_when_the_server_closes(
    library: Library, authority: Authority
) -> None:
    async with open_site(authority, (library, "hyper")) as site:
        assert isinstance(site.driver, HyperDriver)
        reading = asyncio.ensure_future(site.driver.ask("GET", "/watch"))
        await site.app.opened.get()
        site.app.watches[0].write(b"line\n")
        closing = asyncio.ensure_future(site.server.close(5))
        status, _, body = await reading
        assert (status, body) == (200, b"line\n")
        await site.driver.read_to_the_end()
        await site.driver.close()
        await closing
        assert site.driver.is_told_to_leave


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("kind", OWN[:2] + OWN[3:4], ids=name_kind)
async def test_curl_reads_and_writes(kind: Kind, authority: Authority, tmp_path: Path) -> None:
    ca_path = tmp_path / "ca.pem"
    ca_path.write_bytes(authority.cert)
    upload = tmp_path / "upload"
    upload.write_bytes(bytes(2_000_000))
    async with open_site(authority, kind) as site:
        url = f"https://127.0.0.1:{site.server.port}"
        is_http2 = kind[0] is not None
        code, output = await run_curl(
            f"{url}/echo", f"{url}/big?300000", ca_path=ca_path, is_http2=is_http2
        )
        assert code == 0
        assert b'"version": "%s"' % (b"2" if is_http2 else b"1.1") in output
        assert len(output) > 300_000
        assert site.server.connections.accepted_total == 1
        code, output = await run_curl(
            "--data-binary", f"@{upload}", f"{url}/echo", ca_path=ca_path, is_http2=is_http2
        )
        assert code == 0
        assert b'"size": 2000000' in output


@pytest.mark.parametrize("kind", OWN[:2], ids=name_kind)
def test_the_contract_holds_on_uvloop(kind: Kind, authority: Authority) -> None:
    async def run() -> None:
        for check in (*CHECKS, *STREAM_CHECKS):
            async with open_site(authority, kind) as site:
                await check(site)

    uvloop.run(run())
