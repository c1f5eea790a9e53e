"""Printing: text for people, one JSON object for programs, errors with their hint.

Owns how sizes, times and refusals look. Results go to stdout, errors of text output and progress to
stderr.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from snapshot.errors import SnapshotError
from snapshot.points import Point

_MIB = 1 << 20
EXIT_USAGE = 2


def print_json(facts: object) -> None:
    """Print one object: a dataclass, a struct, or a mapping of such."""
    click.echo(json.dumps(_plain(facts)))


def show_error(error: SnapshotError, *, is_json: bool) -> None:
    """Print an error and what to do next."""
    if is_json:
        facts = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
        click.echo(json.dumps({"error": {**facts, "exit_code": error.exit_code}}))
        return
    click.echo(f"error: {error}", err=True)
    if error.hint:
        click.echo(f"hint: {error.hint}", err=True)


def show_usage_error(error: click.UsageError) -> None:
    """Print what is wrong with a command line as one object."""
    name = error.ctx.command_path if error.ctx else "hub-restore"
    facts = {"kind": "UsageError", "message": error.format_message(), "hint": f"run: {name} --help"}
    click.echo(json.dumps({"error": {**facts, "exit_code": EXIT_USAGE}}))


def size(count: int) -> str:
    """Return a number of bytes for people.

    >>> size(512), size(3 << 20)
    ('0.5 KiB', '3.0 MiB')
    """
    return f"{count / _MIB:.1f} MiB" if count >= _MIB else f"{count / 1024:.1f} KiB"


def times(seconds: Mapping[str, float]) -> str:
    """Return how long each phase took."""
    return ", ".join(f"{phase} {spent:.2f} s" for phase, spent in seconds.items())


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "segment"), plural(2, "segment")
    ('1 segment', '2 segments')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def is_terminal() -> bool:
    """Whether somebody is looking at stderr."""
    return sys.stderr.isatty()


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Point):
        return {**dataclasses.asdict(value), "time": value.time}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Path) else value
