"""What a data directory remembers of its prefix, in two small files beside the store.

Owns ``snapshot-state.json`` (which hub this is, which sessions of this directory may stand in HEAD,
and the last position known to be committed) and ``restore-claim.json``: the one-time right of a
restored directory to take the next epoch. Both are 0600, replaced atomically and synced. The files
are hints for the start-up arbiter; the chain itself is in the bucket.
"""

import errno
import fcntl
import os
import secrets
from pathlib import Path
from typing import TypeVar

import msgspec

from hub.clock import Clock
from hub.store import STORE_DIRECTORY
from snapshot.chain import Base
from snapshot.errors import IntegrityError
from snapshot.head import Hash, Head
from snapshot.header import ZERO

STATE_FILE = "snapshot-state.json"
CLAIM_FILE = "restore-claim.json"
_GET_GENERATION = 0x80087601
"""FS_IOC_GETVERSION (linux/fs.h)."""
_NO_GENERATIONS = frozenset({errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})

_T = TypeVar("_T", bound=msgspec.Struct)


class LocalState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The directory's side of the chain.

    `sessions`: those that may stand in HEAD as ours: the last one that took an epoch, and any later
    one that tried to and got no answer. Empty until the first try.
    """

    format: int = 1
    dir_id: str
    hub_id: str
    sessions: tuple[str, ...] = ()
    epoch: int = 0
    seq: int = 0
    rev: int = 0
    chain: Hash = ZERO.hex()
    inherited: tuple[str, ...] = ()
    """Sessions of the directory that this one is a copy of, until it has an epoch of its own."""
    place: str = ""
    """Where the directory was when this was written (`place_of`); "": not known."""
    fenced_by: str = ""
    """Who took the prefix from this directory; it starts no more until it is adopted."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The right to take the next epoch once, and only while HEAD stands where it stood.

    `epoch`, `seq`, `chain` and `state_hash`: of HEAD then. `base`: where the directory's state
    comes from when that is a point before. `adopted`: the directory was not restored but is a copy,
    or was fenced, and is to go on. `own`: HEAD then was of this directory itself, whose store was
    damaged: nothing is taken from another one.
    """

    format: int = 2
    hub_id: str
    epoch: int
    seq: int
    rev: int
    chain: Hash
    state_hash: Hash
    base: Base | None = None
    adopted: bool = False
    own: bool = False
    drained: bool = False
    """Whether HEAD held all that had ever been acknowledged, and the directory has all of it."""
    object_store: str
    """Without secrets; for messages."""
    restored: str
    """RFC 3339, UTC."""


def load_state(directory: Path) -> LocalState | None:
    """Read the directory's state; None when it never had one."""
    return _load(directory / STATE_FILE, LocalState)


def save_state(directory: Path, state: LocalState) -> None:
    """Write the directory's state, durable on return."""
    _save(directory / STATE_FILE, state)


def load_claim(directory: Path) -> Claim | None:
    """Read the claim, if there is one."""
    return _load(directory / CLAIM_FILE, Claim)


def save_claim(directory: Path, claim: Claim) -> None:
    """Write the claim, durable on return."""
    _save(directory / CLAIM_FILE, claim)


def spend_claim(directory: Path) -> None:
    """Remove the claim; none is fine."""
    (directory / CLAIM_FILE).unlink(missing_ok=True)
    sync_directory(directory)


def claim_on(
    head: Head,
    base: Base | None,
    *,
    object_store: str,
    clock: Clock,
    adopted: bool = False,
    own: bool = False,
) -> Claim:
    """Make the claim of a directory restored from `base`, or adopted, while HEAD was `head`."""
    is_past = base is not None and base.seq != head.seq  # higher on a branch left behind
    return Claim(
        hub_id=head.hub_id,
        epoch=head.epoch,
        seq=head.seq,
        rev=head.rev,
        chain=head.chain,
        state_hash=head.state_hash,
        base=base if is_past else None,
        adopted=adopted,
        drained=head.drained and not is_past,
        own=own,
        object_store=object_store,
        restored=clock.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def place_of(directory: Path, *, name: str = "") -> str:
    """Return what tells a data directory from a copy of it.

    The inodes and, where the file system has them, their generations, which no copy of files keeps;
    and `name`, with which whoever runs the hub tells volumes apart that were cloned as a whole.
    """
    marks = [_mark(each) for each in (directory, directory / STORE_DIRECTORY) if each.is_dir()]
    return "/".join((*marks, name))


def _mark(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        answer = fcntl.ioctl(handle, _GET_GENERATION, bytes(8))
        generation = int.from_bytes(answer[:4], "little")
    except OSError as error:
        if error.errno not in _NO_GENERATIONS:
            raise
        generation = 0
    finally:
        os.close(handle)
    return f"{path.stat().st_ino}:{generation}"


def sync_directory(path: Path) -> None:
    """Make a directory's entries durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _load(path: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(
            f"does not parse: {error}",
            op="read",
            object=str(path),
            hint="put the file back from a copy, or restore the hub with hub-restore",
        ) from error


def _save(path: Path, value: msgspec.Struct) -> None:
    spooled = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(spooled, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        spooled.replace(path)
    except BaseException:
        spooled.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
