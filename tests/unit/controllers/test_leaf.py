"""A hub that runs for a year must not end up with an expired certificate."""

import asyncio
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from hub.auth.identity import HubIdentity, create_identity
from hub.auth.keypair import KeyPair
from hub.controllers import leaf as leaves
from hub.controllers.leaf import LeafKeeper
from hub.http.tls import replace_leaf, server_context
from hub.registry.keeping import load_identity, save_identity
from hub.store import MapFull, Store
from tests.unit.registry.given import VirtualClock, an_engine

NAMES = ("hub.example", "localhost")
DAY_S = 24 * 3600.0


def identity(clock: VirtualClock) -> HubIdentity:
    return create_identity("https://hub.example:6443", clock, names=NAMES)


async def test_a_leaf_is_renewed_kept_and_used_once_when_a_third_of_its_life_is_left(
    tmp_path: Path,
) -> None:
    clock, used = VirtualClock(), list[KeyPair]()
    async with an_engine(tmp_path, clock) as engine:
        first = identity(clock)
        await save_identity(engine.store, first)
        keeper = LeafKeeper(engine.store, first, clock, names=NAMES, use=used.append)
        clock.move(240 * DAY_S)
        assert not await keeper.look()
        clock.move(5 * DAY_S)
        assert await keeper.look()
        assert not await keeper.look()
        kept = load_identity(engine.store)
        assert kept is not None
        assert [kept.leaf.cert_pem] == [leaf.cert_pem for leaf in used]
        assert kept.leaf.certificate().not_valid_after_utc > clock.now() + dt.timedelta(days=364)
        assert (kept.leaf.key_pem, kept.serving_ca) == (first.leaf.key_pem, first.serving_ca)
        clock.move(245 * DAY_S)
        assert await keeper.look()


async def test_a_full_disk_puts_a_renewal_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, is_used, is_refused = VirtualClock(), asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(leaves, "LOOK_EVERY_S", 0.0)

    async def refuse(*_: object) -> None:
        is_refused.set()
        raise MapFull("the disk is full")

    async with an_engine(tmp_path, clock) as engine:
        first = identity(clock)
        await save_identity(engine.store, first)
        clock.move(300 * DAY_S)
        keeper = LeafKeeper(engine.store, first, clock, names=NAMES, use=lambda _: is_used.set())
        async with asyncio.timeout(10):
            with monkeypatch.context() as full:
                full.setattr(Store, "commit", refuse)
                running = asyncio.ensure_future(keeper.run())
                await is_refused.wait()
            assert not is_used.is_set()
            await is_used.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_listening_server_shows_the_new_leaf_to_the_next_client() -> None:
    clock = VirtualClock()
    first = identity(clock)
    clock.move(300 * DAY_S)
    second = first.with_leaf_for(NAMES, clock.now())
    context = server_context(first.leaf.cert_pem.encode(), first.leaf.key_pem.encode())
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0, ssl=context)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    async def shown() -> int:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(der).serial_number

    async with server:
        assert await shown() == first.leaf.certificate().serial_number
        replace_leaf(context, second.leaf.cert_pem.encode(), second.leaf.key_pem.encode())
        assert await shown() == second.leaf.certificate().serial_number
