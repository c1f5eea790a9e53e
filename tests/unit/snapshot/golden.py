"""Makes the golden files of the snapshot format: ``python -m tests.unit.snapshot.golden DIR``.

The files of a released format are never made again: a new format gets a new directory beside the
old one, and every release goes on reading all of them. ``format-1`` holds a prefix as a hub left it
(a full, two deltas, released HEAD), the hub key (a test's, worth nothing) and the contents expected
after a restore.
"""

import asyncio
import base64
import json
import sys
import tempfile
from pathlib import Path

from hub.store import create_hub_key
from snapshot.remote import open_remote
from tests.unit.snapshot.hub import serve
from tests.unit.snapshot.support import KEY


async def make(directory: Path) -> None:
    """Write a prefix, its key and its contents."""
    remote = open_remote((directory / "prefix").absolute().as_uri())
    create_hub_key(directory / "hub-key.txt", token=lambda _: KEY.secret)
    with tempfile.TemporaryDirectory() as data:
        async with serve(Path(data) / "d", remote, seed="golden") as hub:
            await hub.put("a", "b", "c", "secret-1", "k" * 600, text="golden")
            hub.ship()
            await hub.put("a", "d", text="changed")
            await hub.drop("b")
            hub.ship()
            await hub.put("secret-1", "secret-2", text="changed twice")
            hub.ship()
            hub.chain.release()
            contents = {
                base64.b64encode(key).decode(): value.decode()
                for key, value in sorted(hub.contents().items())
            }
            position = hub.store.position
    expected = {
        "revision": position.revision,
        "objects": position.count,
        "state_hash": position.state_hash.hex(),
        "contents": contents,
    }
    (directory / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
