"""Runs the real kubectl beside a hub on this loop."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path

from hub.meta import Obj


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def obj(self) -> Obj:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    def rows(self) -> list[list[str]]:
        """The words of each line, for tables without empty cells."""
        return [line.split() for line in self.out.splitlines()]


class Kubectl:
    """kubectl with one kubeconfig and a cache of its own."""

    def __init__(self, binary: Path, kubeconfig: Path, home: Path, editor: str = "false") -> None:
        self._binary, self._kubeconfig, self._home = binary, kubeconfig, home
        self._editor = editor

    async def start(self, *args: str, stdin: bool = False) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            str(self._binary),
            *args,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._home),
                "KUBECONFIG": str(self._kubeconfig),
                "KUBE_EDITOR": self._editor,
            },
        )

    async def run(self, *args: str, stdin: str = "") -> Output:
        """Run to the end, whatever the exit code."""
        process = await self.start(*args, stdin=bool(stdin))
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin.encode() if stdin else None)
        assert process.returncode is not None
        return Output(process.returncode, out.decode(), err.decode())

    async def ok(self, *args: str, stdin: str = "") -> Output:
        """Run to the end, which must be a success."""
        found = await self.run(*args, stdin=stdin)
        assert found.code == 0, (args, found)
        return found
