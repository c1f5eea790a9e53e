"""``restore``: from a prefix into a data directory."""

import shutil
from pathlib import Path

import click

from hub.config import default_key_file
from snapshot.restore import Restored
from snapshot.restore import restore as restore_hub
from snapshot.target import check_target
from tools.hubrestore.access import Prefix, opened, refuse_inside
from tools.hubrestore.looking import make_plan, show_damage, show_plan, show_point
from tools.hubrestore.options import Given, dry, into, keyed, last_consistent, prefixed, timed
from tools.hubrestore.output import plural, print_json, size, times
from tools.hubrestore.progress import shown


@click.command()
@prefixed
@keyed
@into
@timed
@last_consistent
@dry
@click.pass_context
def restore(
    ctx: click.Context, /, *, to_last_consistent: bool, dry_run: bool, **_flags: object
) -> None:
    """Restore a state into a data directory; a store that is there is kept aside.

    The next `hublet serve` on the directory is the same hub, under the next epoch.
    """
    given = Given.of(ctx)
    target = given.target
    refuse_inside(given)
    with opened(given) as prefix:
        if dry_run:
            _rehearse(given, prefix, is_last_consistent=to_last_consistent)
            return
        with shown() as progress:
            done = restore_hub(
                prefix.remote,
                prefix.key,
                given.directory,
                clock=prefix.clock,
                to=target,
                is_last_consistent=to_last_consistent,
                progress=progress,
            )
        key_path = prefix.key.path
    if given.is_json:
        print_json(done)
        return
    _show(done)
    click.echo(f"start it with: {serve_command(done.directory, key_path, given.url)}")
    if done.in_use_by:
        click.echo(
            f"the prefix has not been released by {done.in_use_by}: if that hub still runs, "
            "starting this directory takes the prefix from it and ends it"
        )


def serve_command(directory: Path, key_path: Path | None, url: str) -> str:
    """Return how a hub is started on a directory and a prefix."""
    is_default = key_path in (None, default_key_file(directory.absolute()))
    key_option = "" if is_default else f" --key-file {key_path}"
    return f"hublet serve --data-dir {directory}{key_option} --object-store '{url}'"


def _rehearse(given: Given, prefix: Prefix, *, is_last_consistent: bool) -> None:
    """Say what a restore would do, after every check that needs no segment."""
    planned = make_plan(
        prefix.remote,
        prefix.key,
        prefix.head,
        given.target,
        is_last_consistent=is_last_consistent,
    )
    has_store = check_target(given.directory)
    nearest = next(p for p in (given.directory, *given.directory.absolute().parents) if p.exists())
    free = shutil.disk_usage(nearest).free
    if given.is_json:
        facts = {"directory": given.directory, "replaces_store": has_store, "free_bytes": free}
        print_json({"dry_run": True, "plan": planned, **facts})
        return
    show_plan(planned)
    what = "its store would be kept aside" if has_store else "it holds no store"
    click.echo(f"into {given.directory}: {what}, {size(free)} are free on its volume")
    click.echo("nothing has been changed (--dry-run)")


def _show(done: Restored) -> None:
    click.echo(f"restored hub {done.hub_id} at revision {done.revision} into {done.directory}")
    show_point(done.point, done.left_behind)
    show_damage(done.damaged)
    click.echo(
        f"{done.objects} objects from {plural(done.segments, 'segment')}, {size(done.size)}, "
        f"state {done.state_hash[:16]}"
    )
    if done.replaced:
        click.echo(f"the store that was there is kept as {done.directory / done.replaced}")
    click.echo(times(done.seconds))
