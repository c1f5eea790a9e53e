"""What the verbs of ``hub-restore`` have in common: their options, and what was given with them.

Owns the names: ``--from`` is a prefix, ``--into`` a data directory, ``--to`` a point in time, on
every verb that has them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

import click

from hub.config import default_key_file
from snapshot.points import Target, parse_target

P = ParamSpec("P")
_S3 = ("endpoint", "region", "path_style", "ca_file")
DATA_DIR_VARIABLE, DEFAULT_DIR = "HUBLET_DATA_DIR", "./hublet-data"


def prefixed(command: Callable[P, None]) -> Callable[P, None]:
    """Add the options of a verb that reads a prefix, which is every verb."""
    return _with(command, (_from_option(is_required=True), *_S3_OPTIONS, _OUTPUT))


def prefixed_perhaps(command: Callable[P, None]) -> Callable[P, None]:
    """Add the same, with a prefix that may be left out."""
    return _with(command, (_from_option(is_required=False), *_S3_OPTIONS, _OUTPUT))


def keyed(command: Callable[P, None]) -> Callable[P, None]:
    """Add the option of a verb that needs the hub key."""
    return click.option(
        "--key-file",
        envvar="HUBLET_KEY_FILE",
        show_envvar=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The hub key.  [default: the data directory's name with .key]",
    )(command)


def into(command: Callable[P, None]) -> Callable[P, None]:
    """Add the option of a verb that works on a data directory."""
    return click.option(
        "--into",
        envvar=DATA_DIR_VARIABLE,
        show_envvar=True,
        default=DEFAULT_DIR,
        show_default=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The data directory; names the default key file.",
    )(command)


def timed(command: Callable[P, None]) -> Callable[P, None]:
    """Add the option of a verb that can go back in time."""
    return click.option(
        "--to",
        default="latest",
        show_default=True,
        metavar="latest|REV|TIME|@POS",
        help="The point: a revision, a time (RFC 3339; UTC without a zone), or a position.",
    )(command)


def last_consistent(command: Callable[P, None]) -> Callable[P, None]:
    """Add the option that is content with less."""
    return click.option(
        "--to-last-consistent",
        is_flag=True,
        help="Where segments are lost, be content with the newest point before --to.",
    )(command)


def dry(command: Callable[P, None]) -> Callable[P, None]:
    """Add the option of a verb that changes something."""
    return click.option(
        "--dry-run", is_flag=True, help="Say what would be done, and change nothing."
    )(command)


@dataclass(frozen=True, slots=True)
class Given:
    """What was given with the common options; "" and None where the verb has no such option."""

    url: str
    s3: Mapping[str, str]
    is_json: bool
    key_file: Path | None
    into: Path | None
    to: str

    @classmethod
    def of(cls, ctx: click.Context) -> "Given":
        """Return what stands on the command line of a verb, or in the environment."""
        params = ctx.params
        ctx.meta["places"] = {
            name.replace("_", "-"): params[name]
            for name in ("into", "key_file")
            if params.get(name)
        }
        return cls(
            url=params.get("url") or "",
            s3={name: params[f"s3_{name}"] for name in _S3 if params.get(f"s3_{name}")},
            is_json=params["output"] == "json",
            key_file=params.get("key_file"),
            into=params.get("into"),
            to=params.get("to") or "latest",
        )

    @property
    def target(self) -> Target:
        """The point; raises `TargetUnclear`."""
        return parse_target(self.to)

    @property
    def directory(self) -> Path:
        """The data directory of the verb, or the one that names the default key file."""
        return self.into or Path(os.environ.get(DATA_DIR_VARIABLE) or DEFAULT_DIR)

    @property
    def key_path(self) -> Path:
        """Where the hub key is."""
        return self.key_file or default_key_file(self.directory.absolute())


def asks_for_json(args: Sequence[str]) -> bool:
    """Whether the output is to be JSON; needed before a command line has been understood.

    >>> asks_for_json(["list", "-o", "json"]), asks_for_json(["list", "-ojson"])
    (True, True)
    >>> asks_for_json(["list", "--output=json"]), asks_for_json(["list", "-o", "text", "json"])
    (True, False)
    """
    for at, word in enumerate(args):
        following = args[at + 1] if at + 1 < len(args) else ""
        if word in {"-ojson", "--output=json"} or (
            word in {"-o", "--output"} and following == "json"
        ):
            return True
    return False


def _with(
    command: Callable[P, None], options: Sequence[Callable[[Callable[P, None]], Callable[P, None]]]
) -> Callable[P, None]:
    for option in reversed(options):
        command = option(command)
    return command


def _from_option(*, is_required: bool) -> Callable[[Callable[P, None]], Callable[P, None]]:
    return click.option(
        "--from",
        "url",
        envvar="HUBLET_OBJECT_STORE",
        show_envvar=True,
        required=is_required,
        metavar="URL",
        help="The prefix: file:///dir or s3://bucket/prefix?endpoint=...&region=...",
    )


_S3_OPTIONS = (
    click.option(
        "--s3-endpoint",
        envvar="HUBLET_S3_ENDPOINT",
        show_envvar=True,
        metavar="URL",
        help="S3 endpoint, if not AWS itself.",
    ),
    click.option(
        "--s3-region",
        envvar="HUBLET_S3_REGION",
        show_envvar=True,
        metavar="NAME",
        help="S3 region.",
    ),
    click.option(
        "--s3-path-style",
        envvar="HUBLET_S3_PATH_STYLE",
        show_envvar=True,
        metavar="BOOL",
        help="Bucket in the path: true or false.",
    ),
    click.option(
        "--s3-ca-file",
        envvar="HUBLET_S3_CA_FILE",
        show_envvar=True,
        metavar="FILE",
        help="CA bundle of the S3 endpoint (PEM).",
    ),
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What to print; json is one object, also for an error.",
)
