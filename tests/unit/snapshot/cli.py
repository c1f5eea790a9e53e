"""hub-restore run in the process, for the tests of its verbs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from hub.meta import Obj
from hub.store import HubKey, create_hub_key
from tests.unit.snapshot.support import KEY
from tools.restore import cli


@dataclass(frozen=True, slots=True)
class Command:
    """hub-restore with the bucket, key and directories of a test."""

    place: Path

    @property
    def bucket(self) -> str:
        return (self.place / "bucket").as_uri()

    @property
    def key(self) -> str:
        path = self.place / "k"
        if not path.exists():
            key_file(path, KEY)
        return str(path)

    def bare(self, *args: str, environ: Mapping[str, str] | None = None) -> Result:
        """Run with nothing added."""
        return CliRunner().invoke(cli, [*args], env=dict(environ or {}))

    def __call__(self, verb: str, *args: str, code: int = 0) -> str:
        """Run a verb with the bucket and the key; return what it printed."""
        result = self.bare(verb, "--from", self.bucket, "--key-file", self.key, *args)
        assert result.exit_code == code, result.output
        return result.output

    def json(self, verb: str, *args: str, code: int = 0) -> Obj:
        """Run a verb; return the one object that it printed."""
        found: Obj = json.loads(self(verb, *args, "-o", "json", code=code))
        return found


def key_file(path: Path, key: HubKey) -> Path:
    create_hub_key(path, token=lambda _: key.secret)
    return path
