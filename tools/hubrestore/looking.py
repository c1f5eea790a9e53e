"""``list`` and ``plan``: what lies under a prefix, and what a restore would read of it."""

from collections.abc import Iterable
from dataclasses import dataclass

import click
import msgspec

from hub.store import HubKey
from snapshot.catalog import Catalog, load_catalog, salvage_catalog
from snapshot.errors import IntegrityError, Unreachable
from snapshot.head import Fork, Head, SegmentRef
from snapshot.pins import Pin, list_pins
from snapshot.plan import require_full
from snapshot.points import (
    AtPosition,
    Latest,
    Point,
    Target,
    find_path,
    left_behind,
    on_line,
    render_time,
    resolve,
)
from snapshot.remote import Remote
from tools.hubrestore.access import opened, opened_without_key, prove_key, read_head
from tools.hubrestore.options import Given, keyed, last_consistent, prefixed, timed
from tools.hubrestore.output import plural, print_json, size

RESTORE_BYTES_A_S = 20e6
"""What a restore takes of segments a second, measured on two cores (docs/sizing.md)."""
_LINES = 30
_KINDS = {"full": "full", "d2": "merge 1h", "d1": "merge 5m", "d0": "delta"}


@dataclass(frozen=True, slots=True)
class Planned:
    """What a restore of a point reads; `damaged`: what the bucket lacks, or has of another size."""

    hub_id: str
    point: Point
    segments: tuple[SegmentRef, ...]
    size: int
    damaged: tuple[str, ...]
    left_behind: int
    seconds: float


@click.command("list")
@prefixed
@keyed
@click.option(
    "--all", "shows_all", is_flag=True, help=f"Show every segment, not the newest {_LINES}."
)
@click.pass_context
def list_(ctx: click.Context, /, *, shows_all: bool, **_flags: object) -> None:
    """Show the hub under a prefix and the points it can be restored to.

    Without --key-file only the newest state is shown: the history stands under the hub key.
    """
    given = Given.of(ctx)
    with opened_without_key(given) as remote:
        head = read_head(remote)
        key = prove_key(given, remote, head) if given.key_file else None
        catalog = _catalog(remote, head, key, is_content=True) if key else None
        pins = list_pins(remote)
    if given.is_json:
        print_json(_listed(head, catalog, pins))
        return
    _show_head(head)
    segments = catalog.segments if catalog else head.segments
    _show_segments(segments, head, pins, limit=None if shows_all else _LINES)
    for pin in pins:
        note = f": {pin.note}" if pin.note else ""
        click.echo(f"pin {pin.name} keeps @{pin.seq}, revision {pin.rev}{note}")
    for fork in head.branches:
        click.echo(_branch(fork))
    for name in catalog.damaged if catalog else ():
        click.echo(f"damaged: {name}; what only it names is not shown (put it back from a copy)")
    if catalog is None:
        click.echo("this is the newest state only: its history needs the hub key (--key-file)")


def _listed(head: Head, catalog: Catalog | None, pins: list[Pin]) -> dict[str, object]:
    facts: dict[str, object] = {"head": msgspec.to_builtins(head), "pins": pins}
    if catalog is None:
        return {**facts, "segments": None, "branches": head.branches}
    pinned = {pin.seq: pin.name for pin in pins}
    segments = [
        {
            **msgspec.to_builtins(ref),
            "time": render_time(ref.time_ms),
            "is_on_line": on_line(ref.seq, end=head.seq, branches=head.branches),
            "pin": pinned.get(ref.seq),
        }
        for ref in catalog.segments
    ]
    total = sum(ref.size for ref in catalog.segments)
    shown = {"segments": segments, "size": total, "branches": head.branches}
    return {**facts, **shown, "damaged": catalog.damaged}


def _catalog(remote: Remote, head: Head, key: HubKey, *, is_content: bool) -> Catalog:
    """Read the catalog; `is_content` with the manifests that are whole."""
    try:
        return load_catalog(remote, head, key)
    except IntegrityError:
        if not is_content:
            raise
        return salvage_catalog(remote, head, key)


def _show_head(head: Head) -> None:
    state = "released" if head.released else "in use"
    click.echo(f"hub {head.hub_id}, epoch {head.epoch} ({state} by {head.writer.describe()})")
    if head.moved:
        click.echo(f"moved to {head.moved}: no hub starts here any more")
    click.echo(
        f"revision {head.rev} at position @{head.seq}, {head.objects} objects, "
        f"state {head.state_hash[:16]}, written {head.time}, key {head.key}"
    )
    if head.full is None:
        click.echo("no full yet: there is nothing to restore")


def _show_segments(
    segments: Iterable[SegmentRef], head: Head, pins: list[Pin], *, limit: int | None
) -> None:
    newest = list(reversed(list(segments)))
    if not newest:
        return
    pinned = {pin.seq for pin in pins}
    click.echo(
        f"{'KIND':<8}  {'POSITION':>9}  {'REVISION':>10}  {'TIME':<24}  {'SIZE':>10}  OBJECT"
    )
    for ref in newest[:limit]:
        marks = [
            *(["branch"] if not on_line(ref.seq, end=head.seq, branches=head.branches) else []),
            *(["pinned"] if ref.seq in pinned else []),
            *(["verified"] if ref.is_verified else []),
        ]
        line = (
            f"{_KINDS[ref.level]:<8}  {f'@{ref.seq}':>9}  {ref.to_rev:>10}  "
            f"{render_time(ref.time_ms):<24}  {size(ref.size):>10}  {ref.name}"
        )
        click.echo(f"{line}  {', '.join(marks)}".rstrip())
    left = len(newest) - len(newest[:limit])
    total = size(sum(ref.size for ref in newest))
    more = f", {left} of them not shown (--all shows them)" if left else ""
    click.echo(f"{plural(len(newest), 'segment')} of {total}{more}")


def _branch(fork: Fork) -> str:
    return (
        f"branch: epoch {fork.epoch} was left at @{fork.seq}, revision {fork.rev}; the hub went on "
        f"from @{fork.base_seq} at {render_time(fork.time_ms)} (restore it with --to @{fork.seq})"
    )


@click.command()
@prefixed
@keyed
@timed
@last_consistent
@click.pass_context
def plan(ctx: click.Context, /, *, to_last_consistent: bool, **_flags: object) -> None:
    """Show what a restore would read, and whether it is all there. Reads no segment.

    Ends with 3 when there is nothing that old, with 4 when the point cannot be reached.
    """
    given = Given.of(ctx)
    target = given.target
    with opened(given) as prefix:
        planned = make_plan(
            prefix.remote,
            prefix.key,
            prefix.head,
            target,
            is_last_consistent=to_last_consistent,
        )
    if given.is_json:
        print_json(planned)
    else:
        show_plan(planned)


def make_plan(
    remote: Remote, key: HubKey, head: Head, target: Target, *, is_last_consistent: bool
) -> Planned:
    """Find the segments of a point, around those that the bucket lacks or has of another size.

    Manifests that are damaged are done without where a restore does: for the newest state, and with
    `is_last_consistent`. Raises `NothingToRestore`, `Unreachable`, `IntegrityError`.
    """
    is_content = is_last_consistent or isinstance(target, Latest)
    catalog = _catalog(remote, require_full(head, remote), key, is_content=is_content)
    point = resolve(catalog, target)
    sizes = {entry.name: entry.size for entry in remote.list()}
    bad = frozenset(ref.name for ref in catalog.segments if sizes.get(ref.name) != ref.size)
    try:
        path = find_path(catalog, point.seq, bad=bad)
    except Unreachable as error:
        if not is_last_consistent or error.newest is None:
            raise
        point = resolve(catalog, AtPosition(error.newest))
        path = find_path(catalog, point.seq, bad=bad)
    total = sum(ref.size for ref in path)
    return Planned(
        hub_id=head.hub_id,
        point=point,
        segments=path,
        size=total,
        damaged=tuple(sorted({*bad, *catalog.damaged})),
        left_behind=left_behind(head, point.seq),
        seconds=round(total / RESTORE_BYTES_A_S, 2),
    )


def show_plan(planned: Planned) -> None:
    """Print a plan."""
    show_point(planned.point, planned.left_behind)
    for ref in planned.segments:
        click.echo(f"{_KINDS[ref.level]:<8}  to {ref.to_rev:>10}  {size(ref.size):>10}  {ref.name}")
    show_damage(planned.damaged)
    click.echo(
        f"{plural(len(planned.segments), 'segment')}, {size(planned.size)}, "
        f"about {planned.seconds:.1f} s"
    )


def show_point(point: Point, left: int) -> None:
    """Print which point it is, where it is not what was asked, and what comes after it."""
    click.echo(f"revision {point.rev} of {point.time}, position @{point.seq}")
    if point.note:
        click.echo(f"note: {point.note}")
    if left > 0:
        click.echo(
            f"note: {plural(left, 'position')} after it would be left behind as a branch "
            "(hub-restore list shows it, --to @POSITION restores it)"
        )


def show_damage(damaged: tuple[str, ...]) -> None:
    """Print what is missing or altered and was gone around."""
    for name in damaged:
        click.echo(f"damaged, gone around: {name}")
