"""``copy``, ``pin``, ``unpin``, ``prune``: what is kept in a bucket, elsewhere, or no more."""

import click

from snapshot.chain import Chain
from snapshot.cleanup import Cleaned, Look, look, propose, sweep, write_plan
from snapshot.errors import Refused
from snapshot.moving import copy_chain
from snapshot.pins import find_pin, put_pin, remove_pin
from snapshot.plan import find_point, require_full
from snapshot.retention import Retention, Verdict
from tools.hubrestore.access import Prefix, opened, opened_without_key, read_head
from tools.hubrestore.looking import make_plan, show_plan
from tools.hubrestore.options import Given, dry, keyed, prefixed, timed
from tools.hubrestore.output import plural, print_json, size
from tools.hubrestore.progress import shown

_UNCHANGED = "nothing has been changed (--dry-run)"
_NAMES_SHOWN = 30


@click.command()
@prefixed
@keyed
@timed
@dry
@click.option("--to-store", required=True, metavar="URL", help="The prefix to copy into.")
@click.pass_context
def copy(ctx: click.Context, /, *, to_store: str, dry_run: bool, **_flags: object) -> None:
    """Copy what a restore of a point reads into another prefix, every byte checked.

    The target must be empty, or hold an earlier copy. It counts as released: a hub may start there,
    and then there are two. To move a hub, use migrate.
    """
    given = Given.of(ctx)
    target = given.target
    with opened(given) as prefix, opened_without_key(given, to_store) as other:
        if other.url == prefix.remote.url:
            raise click.UsageError("--to-store is the prefix that is copied")
        if dry_run:
            planned = make_plan(
                prefix.remote, prefix.key, prefix.head, target, is_last_consistent=False
            )
            if given.is_json:
                print_json({"dry_run": True, "plan": planned, "to_store": other.url})
            else:
                show_plan(planned)
                click.echo(_UNCHANGED)
            return
        with shown() as progress:
            done = copy_chain(
                prefix.remote, other, prefix.key, clock=prefix.clock, to=target, progress=progress
            )
        url = other.url
    if given.is_json:
        print_json({"copied": done, "to_store": url})
        return
    click.echo(
        f"copied hub {done.hub_id} at revision {done.revision} to {url}: "
        f"{plural(done.segments, 'segment')}, {size(done.size)}"
    )


@click.command()
@click.argument("name")
@prefixed
@keyed
@timed
@dry
@click.option("--note", default="", metavar="TEXT", help="Why it is kept; shown by list.")
@click.pass_context
def pin(ctx: click.Context, /, *, name: str, note: str, dry_run: bool, **_flags: object) -> None:
    """Keep a point, whatever its age, under a name."""
    given = Given.of(ctx)
    target = given.target
    with opened(given) as prefix:
        require_full(prefix.head, prefix.remote)
        _, point, _ = find_point(prefix.remote, prefix.key, prefix.head, target)
        if not dry_run:
            made = put_pin(prefix.remote, name, point, clock=prefix.clock, note=note)
    if given.is_json:
        print_json({"dry_run": True, "point": point} if dry_run else {"pin": made})
        return
    would = "would keep" if dry_run else "keeps"
    click.echo(f"pin {name} {would} revision {point.rev} of {point.time}, position @{point.seq}")
    if point.note:
        click.echo(f"note: {point.note}")
    if dry_run:
        click.echo(_UNCHANGED)


@click.command()
@click.argument("name")
@prefixed
@dry
@click.pass_context
def unpin(ctx: click.Context, /, *, name: str, dry_run: bool, **_flags: object) -> None:
    """Let a pinned point go the way of its age. Needs no key."""
    given = Given.of(ctx)
    with opened_without_key(given) as remote:
        read_head(remote)
        if dry_run:
            find_pin(remote, name)
        else:
            remove_pin(remote, name)
    if given.is_json:
        print_json({"dry_run": dry_run, "name": name})
        return
    click.echo(f"pin {name} {'would go' if dry_run else 'is gone'}")
    if dry_run:
        click.echo(_UNCHANGED)


@click.command()
@prefixed
@keyed
@click.option("--confirm", is_flag=True, help="Do it; without, it is only shown.")
@click.pass_context
def prune(ctx: click.Context, /, *, confirm: bool, **_flags: object) -> None:
    """Show what retention lets go and, with --confirm and no hub in charge, clean it up.

    A hub does this by itself every hour. What goes is planned first and deleted no sooner than six
    hours later, so that a restore that is under way finds what it reads: run it again then.
    """
    given = Given.of(ctx)
    retention = Retention()
    with opened(given) as prefix:
        chain = prefix.chain()
        if confirm and not prefix.head.released:
            raise Refused(
                f"the prefix has not been released by {prefix.head.writer.describe()}",
                op="prune",
                object=prefix.remote.url,
                hint="that hub cleans up by itself, every hour; leave out --confirm to see what",
            )
        seen = look(prefix.remote, chain.head, prefix.key)
        verdict = propose(prefix.remote, seen, retention)
        done = _carry_out(prefix, chain, seen, verdict, retention) if confirm else None
    if given.is_json:
        print_json(_judged(seen, verdict, done))
    else:
        _show(prefix, seen, verdict, done)


def _carry_out(
    prefix: Prefix, chain: Chain, seen: Look, verdict: Verdict, retention: Retention
) -> Cleaned:
    """Plan what may go and let HEAD forget it; then delete what was planned long enough ago."""
    if not verdict.is_empty:
        write_plan(prefix.remote, seen, verdict)
    if verdict.names:
        chain.commit_horizon(verdict.horizon, verdict.kept)
        again = propose(prefix.remote, seen, retention)
        if not set(again.kept) <= set(verdict.kept):  # pinned since it was judged
            chain.commit_horizon(verdict.horizon, again.kept)
    return sweep(prefix.remote, look(prefix.remote, chain.head, prefix.key), retention)


def _judged(seen: Look, verdict: Verdict, done: Cleaned | None) -> dict[str, object]:
    names = sorted({*verdict.names, *verdict.orphans})
    return {
        "confirmed": done is not None,
        "names": names,
        "size": sum(seen.entries[name].size for name in names),
        "kept": verdict.kept,
        "waiting": sorted(seen.planned),
        "cleaned": done,
    }


def _show(prefix: Prefix, seen: Look, verdict: Verdict, done: Cleaned | None) -> None:
    names = sorted({*verdict.names, *verdict.orphans})
    for name in names[:_NAMES_SHOWN]:
        click.echo(f"{size(seen.entries[name].size):>10}  {name}")
    if len(names) > _NAMES_SHOWN:
        click.echo(f"... and {len(names) - _NAMES_SHOWN} more (-o json has all)")
    total = size(sum(seen.entries[name].size for name in names))
    click.echo(f"{plural(len(names), 'object')} of {total} may go")
    if seen.planned:
        click.echo(f"{plural(len(seen.planned), 'object')} planned earlier wait for their time")
    if done is None and not prefix.head.released:
        click.echo("the hub that writes this prefix does it by itself, every hour")
    elif done is None:
        click.echo("nothing has been changed: --confirm does it")
    else:
        click.echo(f"planned; {done.deleted} deleted, {done.failed} could not be deleted")
