"""``hub-restore``: the command, put together from its verbs."""

import click

from tools.hubrestore.comparing import diff
from tools.hubrestore.doctoring import doctor
from tools.hubrestore.group import Commands
from tools.hubrestore.handing import adopt, release, takeover
from tools.hubrestore.keeping import copy, pin, prune, unpin
from tools.hubrestore.looking import list_, plan
from tools.hubrestore.migrating import migrate
from tools.hubrestore.proving import drill, keycheck, verify
from tools.hubrestore.restoring import restore


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hublet")
def cli() -> None:
    """Bring a hub back from its object store, look after what lies there, and move hubs.

    HUBLET_OBJECT_STORE, HUBLET_DATA_DIR, HUBLET_KEY_FILE and HUBLET_S3_ENDPOINT, _REGION,
    _PATH_STYLE and _CA_FILE in the environment stand for --from, --into, --key-file and the S3
    options; credentials for s3:// come from the usual AWS places.
    """


_VERBS = (
    *(list_, plan, restore, verify, drill, diff),
    *(copy, pin, unpin, prune),
    *(keycheck, doctor),
    *(adopt, takeover, release, migrate),
)
for _verb in _VERBS:
    cli.add_command(_verb)


def main() -> None:
    """Run the command line."""
    cli(auto_envvar_prefix=None)
