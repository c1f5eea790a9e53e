"""``hub-restore``: bring a hub back from its object store, and look at what lies there.

Thin: options, printing and exit codes; the work is `snapshot`'s. Errors go to stderr as
``error: ...`` and ``hint: ...``, with ``--json`` as one object on stdout; exit codes are those of
`snapshot.errors` (docs/errors.md).
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ParamSpec

import click
import msgspec

from hub import store as hub_store
from hub.clock import SystemClock
from hub.config import default_key_file, is_nested
from hub.store import HubKey, load_hub_key
from snapshot.errors import (
    KeyMissing,
    NothingToRestore,
    ObjectMissing,
    SnapshotError,
    TargetNotEmpty,
)
from snapshot.head import Head, check_key, decode_head, open_head
from snapshot.layout import HEAD
from snapshot.remote import Remote, open_remote
from snapshot.restore import restore as restore_hub
from snapshot.verify import verify as verify_prefix
from tools.refusals import explain_os_error

P = ParamSpec("P")

_MIB = 1 << 20


class Commands(click.Group):
    """The group that turns snapshot errors into messages and exit codes."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except SnapshotError as error:
            _show(error, is_json=bool(ctx.meta.get("json")))
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            raise  # whoever read the output has seen enough: click ends quietly
        except OSError as error:
            what, hint = explain_os_error(error, ctx.meta.get("places", {}))
            translated = SnapshotError(what, op=str(ctx.invoked_subcommand), hint=hint)
            _show(translated, is_json=bool(ctx.meta.get("json")))
            ctx.exit(translated.exit_code)


def common(command: Callable[P, None]) -> Callable[P, None]:
    """Add the options that every command has."""
    options = (
        click.option(
            "--object-store",
            "url",
            envvar="HUBLET_OBJECT_STORE",
            show_envvar=True,
            required=True,
            metavar="URL",
            help="file:///dir or s3://bucket/prefix?endpoint=...&region=...&path_style=true",
        ),
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
        click.option("--json", "is_json", is_flag=True, help="Print one JSON object."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def keyed(command: Callable[P, None]) -> Callable[P, None]:
    """Add the options of a command that needs the hub key."""
    options = (
        click.option(
            "--data-dir",
            envvar="HUBLET_DATA_DIR",
            show_envvar=True,
            default="./hublet-data",
            show_default=True,
            type=click.Path(path_type=Path),
            help="Where restore puts the hub (new, empty, or a hub's); names the default key file.",
        ),
        click.option(
            "--key-file",
            envvar="HUBLET_KEY_FILE",
            show_envvar=True,
            type=click.Path(path_type=Path),
            help="The hub key.  [default: DATA_DIR.key]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hublet")
def cli() -> None:
    """Restore a hub from its object store, or look at what lies there.

    HUBLET_OBJECT_STORE, HUBLET_DATA_DIR, HUBLET_KEY_FILE and HUBLET_S3_ENDPOINT, _REGION,
    _PATH_STYLE and _CA_FILE in the environment stand for the options of these names; credentials
    for s3:// come from the usual AWS places.
    """


@cli.command()
@common
@keyed
@click.pass_context
def restore(
    ctx: click.Context,
    /,
    *,
    url: str,
    data_dir: Path,
    key_file: Path | None,
    is_json: bool,
    **s3: str | None,
) -> None:
    """Restore the newest state into a data directory; a store that is there is kept aside.

    The next `hublet serve` on the directory is the same hub, under the next epoch.
    """
    ctx.meta.update(json=is_json, places={"data-dir": data_dir})
    _refuse_inside(url, data_dir)
    remote = _open(url, s3)
    key = _key(remote, key_file, data_dir=data_dir)
    done = restore_hub(remote, key, data_dir, clock=SystemClock())
    if is_json:
        _print_json(done)
        return
    click.echo(f"restored hub {done.hub_id} at revision {done.revision} into {done.directory}")
    click.echo(
        f"{done.objects} objects from {done.segments} segments, {_size(done.size)}, "
        f"state {done.state_hash[:16]}"
    )
    if done.replaced:
        click.echo(f"the store that was there is kept as {done.directory / done.replaced}")
    click.echo(_times(done.seconds))
    key_option = "" if key.path == _default_key(data_dir) else f" --key-file {key.path}"
    options = f"--data-dir {done.directory}{key_option} --object-store '{url}'"
    click.echo(f"start it with: hublet serve {options}")
    if done.in_use_by:
        click.echo(
            f"the prefix has not been released by {done.in_use_by}: if that hub still runs, "
            "starting this directory takes the prefix from it and ends it"
        )


@cli.command("list")
@common
@click.pass_context
def list_(ctx: click.Context, /, *, url: str, is_json: bool, **s3: str | None) -> None:
    """Show the hub under a prefix and what a restore would read. Needs no key."""
    ctx.meta["json"] = is_json
    head = _head(_open(url, s3))
    if is_json:
        click.echo(json.dumps({"head": msgspec.to_builtins(head)}))
        return
    state = "released" if head.released else "in use"
    click.echo(f"hub {head.hub_id}, epoch {head.epoch} ({state} by {head.writer.describe()})")
    click.echo(
        f"revision {head.rev}, {head.objects} objects, state {head.state_hash[:16]}, "
        f"written {head.time}, key {head.key}"
    )
    for ref in head.segments:
        kind = "full " if ref is head.full else "delta"
        click.echo(f"{kind}  to {ref.to_rev:>10}  {_size(ref.size):>10}  {ref.name}")
    if head.full is None:
        click.echo("no full yet: there is nothing to restore")


@cli.command()
@common
@keyed
@click.option("--deep", is_flag=True, help="Build a scratch store too, and compare its state.")
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    *,
    url: str,
    data_dir: Path,
    key_file: Path | None,
    deep: bool,
    is_json: bool,
    **s3: str | None,
) -> None:
    """Read everything back that a restore would need, and check it."""
    ctx.meta["json"] = is_json
    remote = _open(url, s3)
    key = _key(remote, key_file, data_dir=data_dir)
    done = verify_prefix(remote, key, clock=SystemClock(), deep=deep)
    if is_json:
        _print_json(done)
        return
    what = "rebuilt and equal by state hash" if deep else "hashes, seals and chain are whole"
    click.echo(f"hub {done.hub_id} at revision {done.revision}: {what}")
    click.echo(
        f"{done.objects} objects in {done.records} records of {done.segments} segments, "
        f"{_size(done.size)}"
    )
    click.echo(_times(done.seconds))


def main() -> None:
    """Run the command line."""
    cli(auto_envvar_prefix=None)


def _open(url: str, s3: Mapping[str, str | None]) -> Remote:
    """Open the object store; flags win over the environment, the URL's own options over both."""
    given = {f"HUBLET_{name.upper()}": value for name, value in s3.items() if value}
    return open_remote(url, environ={**os.environ, **given})


def _refuse_inside(url: str, data_dir: Path) -> None:
    """Refuse a target in the object store itself: neither would be the other's alone any more."""
    if is_nested(data_dir, url):
        raise TargetNotEmpty(
            f"{data_dir.absolute()} and the object store {url} lie inside each other",
            op="restore",
            object=str(data_dir),
            hint="name a directory outside the object store with --data-dir",
        )


def _key(remote: Remote, key_file: Path | None, *, data_dir: Path) -> HubKey:
    """Load the hub key and compare it with HEAD's before anything is fetched."""
    head = _head(remote)
    path = key_file or _default_key(data_dir)
    try:
        key = load_hub_key(path, outside=data_dir)
    except (hub_store.KeyMismatch, OSError) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"hub key file {path} cannot be read: {error.strerror}"
        raise KeyMissing(
            f"{reason} (this hub was sealed under the key {head.key})", op="key", object=str(path)
        ) from error
    try:
        check_key(head, key)
    except SnapshotError as error:
        error.hint = f"{path} is not its key; {error.hint}"
        raise
    open_head(remote.get(HEAD).data, key)
    return key


def _default_key(data_dir: Path) -> Path:
    return default_key_file(data_dir.absolute())


def _head(remote: Remote) -> Head:
    """Read HEAD without a key."""
    try:
        return decode_head(remote.get(HEAD).data)
    except ObjectMissing as error:
        raise NothingToRestore("there is no hub here", op="read", object=remote.url) from error


def _show(error: SnapshotError, *, is_json: bool) -> None:
    """Print an error and what to do next."""
    if is_json:
        facts = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
        click.echo(json.dumps({"error": {**facts, "exit_code": error.exit_code}}))
        return
    click.echo(f"error: {error}", err=True)
    if error.hint:
        click.echo(f"hint: {error.hint}", err=True)


def _print_json(done: object) -> None:
    assert dataclasses.is_dataclass(done)
    assert not isinstance(done, type)
    click.echo(json.dumps(dataclasses.asdict(done), default=str))


def _size(size: int) -> str:
    return f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / 1024:.1f} KiB"


def _times(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{phase} {spent:.2f} s" for phase, spent in seconds.items())


if __name__ == "__main__":
    main()
