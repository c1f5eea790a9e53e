"""``diff``: what one state has and another has not, names only."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from hub.clock import SystemClock
from snapshot.chain import Chain
from snapshot.diff import Difference, State, compare, directory_state, snapshot_state
from snapshot.plan import require_full
from snapshot.points import Target, parse_target
from tools.hubrestore.access import load_key, opened_without_key
from tools.hubrestore.looking import show_point
from tools.hubrestore.options import Given, keyed, prefixed_perhaps, timed
from tools.hubrestore.output import plural, print_json
from tools.hubrestore.progress import shown

_MARKS = {"left": "<", "right": ">", "changed": "!"}
_WORDS = {"left": "only left", "right": "only right", "changed": "changed"}


@click.command()
@prefixed_perhaps
@keyed
@timed
@click.option(
    "--dir",
    "directories",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A data directory that no hub runs on, instead of a snapshot; the left side first.",
)
@click.option(
    "--and", "other_url", metavar="URL", help="The prefix of the right side.  [default: --from]"
)
@click.option("--and-to", "other_to", metavar="POINT", help="The point of the right side.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many objects are listed; 0: all. All are counted.",
)
@click.pass_context
def diff(
    ctx: click.Context,
    /,
    *,
    directories: tuple[Path, ...],
    other_url: str | None,
    other_to: str | None,
    limit: int,
    **_flags: object,
) -> None:
    """Show which objects two states do not share: a directory or a snapshot on each side.

    With --dir and --from: what the directory holds and the bucket lacks, and the other way round.
    With --from and --and or --and-to: two snapshots. Names and revisions only, never contents.
    """
    given = Given.of(ctx)
    if directories:
        given = replace(given, into=directories[0])
    _check_sides(given, directories, has_other=bool(other_url or other_to))
    with ExitStack() as stack:
        left, right = (
            stack.enter_context(each)
            for each in _sides(given, directories, other_url or given.url, other_to or "latest")
        )
        counts: Counter[tuple[str, str]] = Counter()
        listed: list[Difference] = []
        for each in compare(left.records, right.records):
            counts[each.resource, each.side] += 1
            if not limit or len(listed) < limit:
                listed.append(each)
    if given.is_json:
        _print_json(left, right, counts, listed)
    else:
        _show(left, right, counts, listed)


def _check_sides(given: Given, directories: tuple[Path, ...], *, has_other: bool) -> None:
    if len(directories) > 2 or (directories and has_other):
        raise click.UsageError("there are two sides: --dir or --from, and --dir, --and or --and-to")
    if len(directories) < 2 and not given.url:
        raise click.UsageError("name a prefix with --from, or two directories with --dir")
    if not directories and not has_other:
        raise click.UsageError("name the other side: --dir, --and or --and-to")


def _sides(
    given: Given, directories: tuple[Path, ...], other_url: str, other_to: str
) -> Iterator[AbstractContextManager[State]]:
    yield from (_directory(given, each) for each in directories)
    if len(directories) < 2:
        yield _snapshot(given, given.url, given.target)
    if not directories:
        yield _snapshot(given, other_url, parse_target(other_to))


@contextmanager
def _directory(given: Given, directory: Path) -> Iterator[State]:
    with directory_state(directory, load_key(given)) as state:
        yield state


@contextmanager
def _snapshot(given: Given, url: str, target: Target) -> Iterator[State]:
    with opened_without_key(given, url) as remote, shown() as progress:
        key = load_key(given)
        head = require_full(Chain(remote, key, clock=SystemClock()).read_head(), remote)
        with snapshot_state(remote, key, head, to=target, progress=progress) as state:
            yield state


def _print_json(
    left: State, right: State, counts: Counter[tuple[str, str]], listed: list[Difference]
) -> None:
    resources: dict[str, dict[str, int]] = {}
    for (resource, side), count in sorted(counts.items()):
        resources.setdefault(resource, {})[side] = count
    total = sum(counts.values())
    facts = {"total": total, "resources": resources, "objects": listed}
    print_json({"left": _side(left), "right": _side(right), **facts})


def _side(state: State) -> dict[str, object]:
    facts = {"what": state.what, "hub_id": state.hub_id, "revision": state.revision}
    return {**facts, "objects": state.objects, "point": state.point}


def _show(
    left: State, right: State, counts: Counter[tuple[str, str]], listed: list[Difference]
) -> None:
    for mark, state in (("<", left), (">", right)):
        click.echo(f"{mark} {state.what}: revision {state.revision}, {state.objects} objects")
        if state.point is not None and state.point.note:
            show_point(state.point, 0)
    if left.hub_id and right.hub_id and left.hub_id != right.hub_id:
        click.echo(f"note: these are two hubs, {left.hub_id} and {right.hub_id}")
    for each in listed:
        place = "/".join(part for part in (each.namespace, each.name) if part)
        at = " -> ".join(str(revision) for revision in (each.left, each.right) if revision)
        click.echo(f"{_MARKS[each.side]} {each.resource} {place} ({at})")
    total = sum(counts.values())
    if total > len(listed):
        click.echo(f"... and {total - len(listed)} more (--limit 0 lists all)")
    for (resource, side), count in sorted(counts.items()):
        click.echo(f"{resource}: {count} {_WORDS[side]}")
    click.echo(plural(total, "difference") if total else "no differences")
