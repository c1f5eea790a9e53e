"""``hublet store``: look after a data directory while no hub runs on it.

Thin: the work is `hub.store`'s. Exit codes are those of ``hublet serve`` (docs/errors.md).
"""

import asyncio
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from hub.clock import SystemClock
from hub.config import default_key_file
from hub.meta.codec.json import decode, draft
from hub.store import (
    Draft,
    HubKey,
    Store,
    compact_store,
    has_store,
    load_hub_key,
    verify_store,
)
from snapshot.target import occupied
from tools.failures import EXIT_STORE, KNOWN, explain, fail

P = ParamSpec("P")
T = TypeVar("T")
_MIB = 1 << 20


@click.group("store")
def store() -> None:
    """Look after a data directory that no hub runs on: check it, compact it, rotate its key."""


def _placed(command: Callable[P, None]) -> Callable[P, None]:
    """Add the options that every command has."""
    options = (
        click.option(
            "--data-dir",
            envvar="HUBLET_DATA_DIR",
            show_envvar=True,
            default="hublet-data",
            show_default=True,
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="The data directory of the hub.",
        ),
        click.option(
            "--key-file",
            envvar="HUBLET_KEY_FILE",
            show_envvar=True,
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The hub key.  [default: DATA_DIR.key]",
        ),
        click.option("--json", "is_json", is_flag=True, help="Print one JSON object."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@store.command()
@_placed
def verify(*, data_dir: Path, key_file: Path | None, is_json: bool) -> None:
    """Check every page and every value, and change nothing."""
    report = _on(data_dir, key_file, lambda place, key: verify_store(place, hub_key=key))
    if is_json:
        _print_json(dataclasses.asdict(report))
        return
    position = report.position
    click.echo(f"{data_dir} is whole: {report.format}, directory {report.dir_id}")
    click.echo(
        f"revision {position.revision}, {position.count} objects, "
        f"state {position.state_hash.hex()[:16]}, "
        f"closed {'cleanly' if report.was_clean else 'by a crash'}"
    )
    click.echo(
        f"{report.log_entries} changes above revision {report.log_after}, "
        f"{report.volatile} Events, {report.renewals} renewals, "
        f"data keys {', '.join(map(str, report.data_keys))}"
    )
    click.echo(f"{_size(report.file_bytes)}, {_size(report.free_bytes)} of them free")


@store.command()
@_placed
def compact(*, data_dir: Path, key_file: Path | None, is_json: bool) -> None:
    """Give the free pages of the file back; it is rewritten beside itself and checked."""
    done = _on(data_dir, key_file, lambda place, key: compact_store(place, hub_key=key))
    if is_json:
        _print_json(dataclasses.asdict(done))
        return
    click.echo(
        f"{data_dir}: {_size(done.before_bytes)} before, {_size(done.after_bytes)} now, "
        f"{done.position.count} objects at revision {done.position.revision}, checked"
    )


@store.command("rotate-key")
@_placed
def rotate_key(*, data_dir: Path, key_file: Path | None, is_json: bool) -> None:
    """Add a data key and bring everything that is sealed under it.

    The hub key stays as it is. The next segment that a hub ships from here is a full.
    """
    number, count = _on(data_dir, key_file, lambda place, key: asyncio.run(_rotate(place, key)))
    if is_json:
        _print_json({"data_key": number, "resealed": count})
        return
    click.echo(f"{data_dir}: data key {number} seals from now on, {count} objects are under it")


async def _rotate(place: Path, hub_key: HubKey) -> tuple[int, int]:
    opened = Store.open(place, hub_key=hub_key, clock=SystemClock(), can_create=False)
    try:
        number = await opened.rotate_data_key(hub_key)
        return number, await opened.reseal(_redraft)
    finally:
        await opened.close()


def _redraft(document: bytes) -> Draft:
    head, tail = draft(decode(document))
    return Draft(head, tail)


def _on(data_dir: Path, key_file: Path | None, work: Callable[[Path, HubKey], T]) -> T:
    """Do something to the store of a directory with its hub key, or end with what is wrong."""
    file = key_file or default_key_file(data_dir)
    advice = "name the data directory of a hub with --data-dir"
    if not data_dir.is_dir():  # the key beside it would be missed first
        what = "has no store" if data_dir.exists() else "does not exist"
        fail(EXIT_STORE, f"{data_dir} {what}", advice)
    try:
        key = load_hub_key(file, outside=data_dir)
        with occupied(data_dir, can_create=False, can_sweep=False) as place:
            if not has_store(place):
                fail(EXIT_STORE, f"{data_dir} has no store", advice)
            return work(place, key)
    except KNOWN as error:
        explain(error, {"data-dir": data_dir, "key-file": file})


def _print_json(facts: dict[str, object]) -> None:
    click.echo(json.dumps(facts, default=_plain))


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else str(value)


def _size(size: int) -> str:
    return f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / 1024:.1f} KiB"
