"""``adopt``, ``takeover`` and ``release``: who may write a prefix next."""

import datetime as dt
from pathlib import Path

import click

from hub.store import has_store, verify_store
from snapshot.adopting import Found, examine, refuse_loss
from snapshot.adopting import adopt as adopt_directory
from snapshot.cleanup import bucket_now
from snapshot.errors import NothingToRestore, Refused
from snapshot.head import Head
from snapshot.layout import HEAD
from snapshot.remote import Remote
from snapshot.target import occupied
from tools.hubrestore.access import opened, opened_without_key, read_head, refuse_inside
from tools.hubrestore.hubapi import HubApi, wait_released
from tools.hubrestore.options import Given, dry, into, keyed, prefixed
from tools.hubrestore.output import plural, print_json

_YOUNG = dt.timedelta(minutes=2)
"""A hub that runs writes HEAD every 30 s."""
_UNCHANGED = "nothing has been changed (--dry-run)"


@click.command()
@prefixed
@keyed
@into
@dry
@click.option(
    "--discard-unshipped",
    is_flag=True,
    help="Where the bucket has more too, go on from it; the old store is kept aside.",
)
@click.pass_context
def adopt(
    ctx: click.Context, /, *, discard_unshipped: bool, dry_run: bool, **_flags: object
) -> None:
    """Make a directory the one that goes on: a copy of the hub's, or one that was fenced.

    It leaves a one-time claim; the next `hublet serve` takes the prefix, and ends whoever has it.
    """
    given = Given.of(ctx)
    directory = given.directory
    refuse_inside(given)
    _check_directory(directory)
    with opened(given) as prefix, occupied(directory, can_create=False, can_sweep=False) as place:
        if not has_store(place):
            raise _no_store(directory)
        report = verify_store(place, hub_key=prefix.key)
        chain = prefix.chain()
        found = examine(chain, directory, report.position)
        if not given.is_json:
            _show_found(found, directory)
        if dry_run:
            refuse_loss(chain.head, directory, found, discards_unshipped=discard_unshipped)
        else:
            adopt_directory(
                chain, directory, found, clock=prefix.clock, discards_unshipped=discard_unshipped
            )
    if given.is_json:
        print_json({"adopted": not dry_run, "found": found})
        return
    if dry_run:
        click.echo(_UNCHANGED)
        return
    click.echo(f"adopted: the next start of {directory} goes on {_how(found)}")
    if found.in_use_by:
        click.echo(f"stop {found.in_use_by} first, if it still runs: that start ends it")


def _check_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise _no_store(directory)


def _no_store(directory: Path) -> NothingToRestore:
    return NothingToRestore(
        "the directory has no store to adopt",
        op="adopt",
        object=str(directory),
        hint="name the data directory of a hub with --into; or restore: hub-restore restore",
    )


def _show_found(found: Found, directory: Path) -> None:
    click.echo(f"{directory} is hub {found.hub_id} at revision {found.revision}, and whole")
    if found.fenced_by:
        click.echo(f"it was fenced: {found.fenced_by}")
    point = found.common
    if point is not None:
        click.echo(f"the bucket's newest point that is not after it: @{point.seq}, {point.rev}")
    unshipped = "changes that the bucket lacks" if found.has_unshipped else "nothing of its own"
    behind = plural(found.behind, "position") if found.behind > 0 else "nothing"
    click.echo(f"it holds {unshipped}; the bucket has {behind} that it lacks")


def _how(found: Found) -> str:
    if found.behind > 0:
        return "from the bucket's newest state, its old store kept aside"
    return "with all that it holds"


@click.command()
@prefixed
@keyed
@dry
@click.option(
    "--i-have-stopped-the-old-hub",
    "is_stopped",
    is_flag=True,
    help="Needed when HEAD was written in the last two minutes.",
)
@click.pass_context
def takeover(ctx: click.Context, /, *, is_stopped: bool, dry_run: bool, **_flags: object) -> None:
    """Release a prefix for a hub that is gone for good; one that still runs is ended.

    Afterwards an empty directory may be started on it, or one that was restored or adopted.
    """
    given = Given.of(ctx)
    with opened(given) as prefix:
        head = prefix.head
        if head.moved:
            raise Refused(
                f"this hub has been moved to {head.moved}",
                op="take over",
                hint="take it over there; or start here with --bootstrap-takeover Force",
            )
        age = None if head.released else _head_age(prefix.remote)
        if age is not None and age < _YOUNG and not (is_stopped or dry_run):
            raise Refused(
                f"{head.writer.describe()} wrote HEAD {age.total_seconds():.0f} s ago: it seems to "
                "run",
                op="take over",
                object=prefix.remote.url,
                hint="stop that hub in good order (hub-restore release), or give "
                "--i-have-stopped-the-old-hub",
            )
        if not (head.released or dry_run):
            head = prefix.chain().force_release()
    facts = {"was_released": age is None, "age_seconds": age.total_seconds() if age else None}
    if given.is_json:
        print_json({"taken": age is not None and not dry_run, "epoch": head.epoch, **facts})
        return
    _show_taken(head, age, is_dry_run=dry_run)


def _head_age(remote: Remote) -> dt.timedelta:
    """Return how long ago HEAD was written, by the bucket's clock."""
    return max(bucket_now(remote) - remote.head(HEAD).modified, dt.timedelta())


def _show_taken(head: Head, age: dt.timedelta | None, *, is_dry_run: bool) -> None:
    if age is None:
        click.echo(f"the prefix has been released already by {head.writer.describe()}")
    elif is_dry_run:
        click.echo(
            f"{head.writer.describe()} wrote HEAD {age.total_seconds():.0f} s ago; its prefix "
            "would be released, and it be ended if it runs"
        )
        if age < _YOUNG:
            click.echo("it seems to run: this will need --i-have-stopped-the-old-hub")
        click.echo(_UNCHANGED)
    else:
        click.echo(f"released under epoch {head.epoch}: {head.writer.describe()} writes no more")


@click.command()
@prefixed
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask the hub of this kubeconfig to ship the rest, release and stop.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for it.",
)
@click.pass_context
def release(
    ctx: click.Context, /, *, kubeconfig: Path | None, timeout_s: int, **_flags: object
) -> None:
    """Have a running hub ship the rest, give up its prefix and stop. Needs no hub key.

    Without --kubeconfig it only says how the prefix stands; only its hub can release it.
    """
    given = Given.of(ctx)
    with opened_without_key(given) as remote:
        head = read_head(remote)
        if not head.released and kubeconfig is None:
            raise Refused(
                f"the prefix has not been released by {head.writer.describe()}",
                op="release",
                object=remote.url,
                hint="stop that hub with SIGTERM, or name its kubeconfig with --kubeconfig; if it "
                "is gone for good: hub-restore takeover",
            )
        if not head.released and kubeconfig is not None:
            HubApi.read(kubeconfig).release(hub_id=head.hub_id)
            head = wait_released(remote, timeout_s=timeout_s)
    if given.is_json:
        print_json({"released": head.released, "epoch": head.epoch, "revision": head.rev})
        return
    click.echo(
        f"released by {head.writer.describe()}: hub {head.hub_id}, epoch {head.epoch}, "
        f"revision {head.rev}"
    )
