"""Nothing is answered before a hub knows that it may: what a client sees while one starts."""

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hub import server
from hub.backup.opening import open_backup
from hub.backup.runner import Backup
from hub.fleet.leases import LeaseJudge
from tests.hubs import running_hub


def knock(port: int) -> str:
    """Return what a client of a port is told."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return "refused"
    return "accepted"


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


async def test_a_starting_hub_holds_its_address_and_refuses_every_connection(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through arbiter, restore, epoch and the refresh of the Leases, to the very last of them."""
    bucket, key = (tmp_path / "bucket").as_uri(), tmp_path / "hub.key"
    async with running_hub(tmp_path / "data", object_store=bucket, key_file=key):
        pass
    seen: list[tuple[str, bool, str]] = []

    def watched(what: str, function: Callable[..., Awaitable[object]]) -> object:  # type: ignore[explicit-any]  # three signatures, passed through
        async def call(*args: object, **kwargs: object) -> object:
            result = await function(*args, **kwargs)
            seen.append((what, is_free(free_port), knock(free_port)))
            return result

        return call

    monkeypatch.setattr(server, "open_backup", watched("restored", open_backup))
    monkeypatch.setattr(Backup, "take_over", watched("epoch", Backup.take_over))
    monkeypatch.setattr(LeaseJudge, "refresh_all", watched("leases", LeaseJudge.refresh_all))
    async with running_hub(
        tmp_path / "new", port=free_port, object_store=bucket, key_file=key
    ) as hub:
        assert hub.start_kind == "restored"
        assert seen == [
            ("restored", False, "refused"),
            ("epoch", False, "refused"),
            ("leases", False, "refused"),
        ]
        assert (await hub.admin.call("GET", "/readyz")).status == 200
        assert knock(free_port) == "accepted"
