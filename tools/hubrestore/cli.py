"""``hub-restore``: the command, put together from its verbs."""

import click

from tools.hubrestore.group import Commands
from tools.hubrestore.looking import list_, plan
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


for verb in (list_, plan, restore, verify, drill, keycheck):
    cli.add_command(verb)


def main() -> None:
    """Run the command line."""
    cli(auto_envvar_prefix=None)
