"""A small volume to fill: loop-mounted where that is allowed, else a tmpfs, else a limit on files.

with small_volume(tmp_path) as volume:
    ... keep files under volume.path ...
    volume.fill(process_id)
    volume.free(process_id)
"""

import contextlib
import errno
import os
import resource
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SIZE_BYTES = 64 << 20
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Volume(ABC):
    """A place for files that can be made full, and have room again."""

    path: Path
    kind: str

    @abstractmethod
    def fill(self, process_id: int) -> None:
        """Leave no room for a process that writes here."""

    @abstractmethod
    def free(self, process_id: int) -> None:
        """Give the room back."""


@dataclass(slots=True)
class Mounted(Volume):
    """A filesystem of its own, filled by a file."""

    path: Path
    kind: str

    def fill(self, process_id: int, *, room: int = 0) -> None:
        """Leave no room, or a few blocks."""
        block = bytes(1 << 20)
        with (self.path / "ballast").open("ab", buffering=0) as file:
            while block:
                try:
                    written = file.write(block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    block = block[: len(block) // 2]
                else:
                    assert written
            file.truncate(file.tell() - room)
            os.fsync(file.fileno())

    def free(self, process_id: int) -> None:
        (self.path / "ballast").unlink()


@dataclass(slots=True)
class Limited(Volume):
    """A directory whose files may not grow: RLIMIT_FSIZE of the process that writes them."""

    path: Path
    kind: str
    data_file: str

    def fill(self, process_id: int) -> None:
        size = (self.path / self.data_file).stat().st_size
        _, hard = resource.prlimit(process_id, resource.RLIMIT_FSIZE)
        resource.prlimit(process_id, resource.RLIMIT_FSIZE, (size, hard))

    def free(self, process_id: int) -> None:
        _, hard = resource.prlimit(process_id, resource.RLIMIT_FSIZE)
        resource.prlimit(process_id, resource.RLIMIT_FSIZE, (hard, hard))


@contextlib.contextmanager
def small_volume(directory: Path, *, data_file: str) -> Iterator[Volume]:
    """Give a volume under a directory; `data_file` is where in it most is written."""
    place = directory / "volume"
    place.mkdir()
    kind, refusals = _mount(directory / "image", place)
    if not kind:
        yield Limited(place, f"files that may not grow ({'; '.join(refusals)})", data_file)
        return
    try:
        yield Mounted(place, kind)
    finally:
        _run("umount", str(place))


def _mount(image: Path, place: Path) -> tuple[str, list[str]]:
    """Return what was mounted, "" for nothing, and why other ways were closed."""
    refusals = []
    try:
        with image.open("wb") as file:
            file.truncate(SIZE_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        _run("mount", "-o", "loop", str(image), str(place))
    except OSError as error:
        refusals.append(str(error))
    else:
        return "a loop-mounted ext4", refusals
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(place))
    except OSError as error:
        refusals.append(str(error))
    else:
        return f"a tmpfs ({'; '.join(refusals)})", refusals
    return "", refusals


def _run(program: str, *arguments: str) -> None:
    """Run a program of the system. Raises OSError with what it says."""
    found = shutil.which(program, path=_PATH)
    if found is None:
        raise OSError(f"{program} is not installed")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError((done.stderr.splitlines() or [f"{program}: {done.returncode}"])[0])
