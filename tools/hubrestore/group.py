"""The group that turns errors into messages and exit codes (docs/errors.md)."""

import click

from hub import store as hub_store
from hub.store import StoreError
from snapshot.errors import IntegrityError, KeyMismatch, SnapshotError, TargetBusy
from tools.hubrestore.options import asks_for_json
from tools.hubrestore.output import EXIT_USAGE, show_error, show_usage_error
from tools.refusals import explain_os_error

_ARGS = "hub-restore.args"


class Commands(click.Group):
    """A group whose verbs raise `SnapshotError`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was given: how to print an error must be known before all is understood."""
        ctx.meta[_ARGS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        is_json = asks_for_json(ctx.meta[_ARGS])
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if not is_json:
                raise
            show_usage_error(error)
            ctx.exit(EXIT_USAGE)
        except BrokenPipeError:
            raise  # whoever read the output has seen enough: click ends quietly
        except (SnapshotError, StoreError, OSError) as error:
            known = _known(error, ctx)
            show_error(known, is_json=is_json)
            ctx.exit(known.exit_code)


def _known(error: SnapshotError | StoreError | OSError, ctx: click.Context) -> SnapshotError:
    if isinstance(error, SnapshotError):
        return error
    op = str(ctx.invoked_subcommand)
    if isinstance(error, hub_store.Locked):
        return TargetBusy(str(error), op=op)
    if isinstance(error, hub_store.Corrupt):
        return IntegrityError(str(error), op=op, hint="go on from the bucket: hub-restore restore")
    if isinstance(error, hub_store.KeyMismatch):
        return KeyMismatch(str(error), op=op)
    if isinstance(error, StoreError):
        return SnapshotError(str(error), op=op)
    what, hint = explain_os_error(error, ctx.meta.get("places", {}))
    return SnapshotError(what, op=op, hint=hint)
