"""``verify``, ``drill`` and ``keycheck``: what can be proven about a prefix without a restore."""

import tempfile
from pathlib import Path

import click

from snapshot.head import SegmentRef
from snapshot.plan import fetch
from snapshot.segment import open_segment
from snapshot.verify import Verified
from snapshot.verify import verify as verify_prefix
from tools.hubrestore.access import Prefix, opened
from tools.hubrestore.looking import show_damage, show_point
from tools.hubrestore.options import Given, keyed, prefixed, timed
from tools.hubrestore.output import plural, print_json, size, times
from tools.hubrestore.progress import shown


@click.command()
@prefixed
@keyed
@timed
@click.option("--deep", is_flag=True, help="Build a scratch store too, and compare its state.")
@click.pass_context
def verify(ctx: click.Context, /, *, deep: bool, **_flags: object) -> None:
    """Read everything back that a restore would need, and check it."""
    given = Given.of(ctx)
    target = given.target
    with opened(given) as prefix, shown() as progress:
        done = verify_prefix(
            prefix.remote,
            prefix.key,
            clock=prefix.clock,
            deep=deep,
            to=target,
            progress=progress,
        )
    if given.is_json:
        print_json(done)
    else:
        _show(done)


@click.command()
@prefixed
@keyed
@timed
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Where there is room for the segments and a store.  [default: the system's]",
)
@click.pass_context
def drill(ctx: click.Context, /, *, scratch: Path | None, **_flags: object) -> None:
    """Restore into a scratch directory, compare the state, and say how fast that was."""
    given = Given.of(ctx)
    target = given.target
    with opened(given) as prefix, shown() as progress:
        done = verify_prefix(
            prefix.remote,
            prefix.key,
            clock=prefix.clock,
            deep=True,
            to=target,
            scratch=scratch,
            progress=progress,
        )
    total_s = max(done.seconds["total"], 1e-3)
    if given.is_json:
        rates = {
            "objects_per_second": done.objects / total_s,
            "bytes_per_second": done.size / total_s,
        }
        print_json({"drill": done, **rates})
        return
    _show(done)
    click.echo(f"{done.objects / total_s:,.0f} objects/s, {size(int(done.size / total_s))}/s")


def _show(done: Verified) -> None:
    deep = "rebuilt and equal by state hash"
    what = deep if done.is_deep else "hashes, seals and chain are whole"
    click.echo(f"hub {done.hub_id} at revision {done.revision}: {what}")
    show_point(done.point, 0)
    show_damage(done.damaged)
    click.echo(
        f"{done.objects} objects in {done.records} records of {plural(done.segments, 'segment')}, "
        f"{size(done.size)}"
    )
    click.echo(times(done.seconds))


@click.command()
@prefixed
@keyed
@click.pass_context
def keycheck(ctx: click.Context, /, **_flags: object) -> None:
    """Prove that a key file opens the prefix: HEAD's seal, and the newest full's header.

    Run it on the copy of the key that is kept elsewhere. The key itself is never shown.
    """
    given = Given.of(ctx)
    with opened(given) as prefix:
        full = prefix.head.full
        if full is not None:
            _open_header(prefix, full)
    if given.is_json:
        facts = {"hub_id": prefix.head.hub_id, "fingerprint": prefix.key.fingerprint}
        print_json({**facts, "opened": full.name if full else None})
        return
    click.echo(f"{given.key_path} is the key of hub {prefix.head.hub_id}")
    click.echo(f"fingerprint {prefix.key.fingerprint}, as in HEAD, whose seal it opens")
    click.echo(f"it opens {full.name}" if full else "there is no full yet that it could open")


def _open_header(prefix: Prefix, full: SegmentRef) -> None:
    with tempfile.TemporaryDirectory(prefix="hublet-keycheck-") as name:
        (fetched,) = fetch(prefix.remote, [full], Path(name))
        with open_segment(fetched.path, prefix.key, name=full.name):
            pass  # the header's seal has been opened and checked
