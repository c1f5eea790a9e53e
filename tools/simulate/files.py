"""Files of a run: each is replaced in one step, and what cannot be written is found out early."""

import os
import tempfile
from pathlib import Path


def check_directory(path: Path) -> None:
    """Make sure that files can be made in the directory at `path`. Raises OSError."""
    with tempfile.TemporaryFile(dir=path):
        pass


def check_file(path: Path) -> None:
    """Make sure that `replace_file` will be able to write `path`. Raises OSError."""
    if _is_replaceable(path):
        check_directory(path.parent)
    else:
        with path.open("ab"):
            pass


def replace_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write `content`; it is at `path`, whole and on disk, when this returns. Raises OSError.

    A link, a pipe or a device is written to, not replaced.
    """
    if not _is_replaceable(path):
        path.write_bytes(content)
        return
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _is_replaceable(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or not path.exists())
