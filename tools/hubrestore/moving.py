"""The steps of a move, each of which knows whether it has been done.

Owns that a move which was cut short is taken up: what has been done is told by the HEAD of both
prefixes and by what the directory remembers; nothing else is written down.
"""

import shlex
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from hub.clock import Clock
from hub.store import STORE_DIRECTORY, HubKey, has_store
from snapshot.arbiter import Allowed, Takeover
from snapshot.chain import Chain
from snapshot.errors import Refused, RemoteUnavailable, SnapshotError
from snapshot.head import Head
from snapshot.local import load_claim, load_state
from snapshot.moving import move_in_from
from snapshot.plan import Progress
from snapshot.remote import Remote
from snapshot.restore import restore
from tools.hubrestore.hubapi import HubApi, HubIdentity, identity_of, wait_released
from tools.hubrestore.output import plural

_LOOK_EVERY_S = 0.5
_LOG_TAIL = 2000
_SILENT_S = 15.0


@dataclass(frozen=True, slots=True)
class Move:
    """A hub on its way from one prefix to another, or the same, and into a directory."""

    source: Remote
    target: Remote
    key: HubKey
    clock: Clock
    directory: Path
    hub: HubApi
    """Through the URL that agents use."""
    progress: Callable[[], AbstractContextManager[Progress]]

    @property
    def is_same_prefix(self) -> bool:
        """Whether the hub stays on its prefix."""
        return self.source.url == self.target.url

    def head(self, remote: Remote) -> Head | None:
        """Read HEAD and check its seal."""
        return Chain(remote, self.key, clock=self.clock).read_head()

    @property
    def is_started(self) -> bool:
        """Whether a hub has taken the target prefix with the directory."""
        head, state = self.head(self.target), load_state(self.directory)
        return (
            head is not None
            and state is not None
            and not head.released
            and head.writer.dir == state.dir_id
            and head.writer.session in state.sessions
        )

    @property
    def is_restored(self) -> bool:
        """Whether the directory holds the target's newest state and the right to go on with it."""
        head, claim = self.head(self.target), load_claim(self.directory)
        if head is None or claim is None or not has_store(self.directory / STORE_DIRECTORY):
            return False
        stands = (head.hub_id, head.epoch, head.seq, head.chain)
        return stands == (claim.hub_id, claim.epoch, claim.seq, claim.chain)

    @property
    def is_copied(self) -> bool:
        """Whether the target prefix holds what the source ended with."""
        if self.is_same_prefix:
            return True
        source, target = self.head(self.source), self.head(self.target)
        if source is None or target is None or source.moved != self.target.url:
            return False
        stands = (target.hub_id, target.seq, target.chain)
        return stands == (source.hub_id, source.seq, source.chain)

    @property
    def is_released(self) -> bool:
        """Whether the old hub has ended."""
        head = self.head(self.source)
        return head is not None and head.released


def release_old(move: Move, *, hub_id: str, is_stopped: bool, timeout_s: float) -> str:
    """Have the old hub ship the rest, release and stop; say what there was to do."""
    if move.is_released:
        return "the old hub has released its prefix"
    if is_stopped:
        return "the old hub has not released its prefix; it is said to be stopped"
    move.hub.release(hub_id=hub_id)
    head = wait_released(move.source, timeout_s=timeout_s)
    _wait_silent(move)
    return f"the old hub has shipped up to revision {head.rev}, released its prefix and stops"


def _wait_silent(move: Move) -> None:
    """Wait a little until the old hub has closed its port, which the new one may want."""
    until_s = time.monotonic() + _SILENT_S
    while time.monotonic() < until_s:
        try:
            move.hub.hub()
        except RemoteUnavailable:
            return
        except SnapshotError:
            pass  # it answers, and no longer with what was asked
        time.sleep(_LOOK_EVERY_S)


def _refuse_moved(move: Move) -> None:
    head = move.head(move.source)
    if head is not None and head.moved:
        raise Refused(f"this hub has been moved to {head.moved}", op="move", hint="move it there")


def bring_over(move: Move, *, is_stopped: bool) -> str:
    """Copy the chain into the target prefix and end it at the source."""
    if move.is_same_prefix:
        _refuse_moved(move)
        return f"the hub stays on {move.target.url}"
    if move.is_copied:
        return f"the chain has been brought to {move.target.url}"
    allowed = Allowed(takeover=Takeover.FORCE if is_stopped else Takeover.IF_RELEASED)
    with move.progress() as progress:
        done = move_in_from(
            move.source,
            move.target,
            move.key,
            clock=move.clock,
            allowed=allowed,
            progress=progress,
        )
    what = plural(done.segments, "segment")
    return f"brought {what} up to revision {done.revision} to {move.target.url}"


def restore_into(move: Move) -> str:
    """Restore from the target prefix into the directory."""
    if move.is_restored:
        return f"{move.directory} holds the newest state"
    with move.progress() as progress:
        done = restore(move.target, move.key, move.directory, clock=move.clock, progress=progress)
    return (
        f"restored {done.objects} objects at revision {done.revision} into {move.directory}, "
        f"{done.seconds['total']:.2f} s"
    )


def start_detached(command: str, log: Path) -> "subprocess.Popen[bytes]":
    """Run a command that outlives this one, its output appended to a file."""
    words = shlex.split(command)
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise Refused(
            f"{words[0]} cannot be run: {error.strerror}", op="start", hint="correct --start"
        ) from error


def wait_for_hub(
    move: Move, process: "subprocess.Popen[bytes] | None", log: Path, *, timeout_s: float
) -> HubIdentity:
    """Wait until the URL leads to the hub that the directory started; return who answers.

    Raises `Refused` when another one does to the end, or the process has ended; else the last
    error.
    """
    until_s = time.monotonic() + timeout_s
    while True:
        problem: SnapshotError
        try:
            found = identity_of(move.hub.hub())
        except SnapshotError as error:
            problem = error
        else:
            says = _mismatch(move, found)
            if not says:
                return found
            hint = "see where the name leads (DNS, load balancer, Service), then run this again"
            problem = Refused(says, op="check", object=move.hub.identity.server, hint=hint)
        if process is not None and process.poll() is not None:
            raise _ended(process, log)
        if time.monotonic() >= until_s:
            raise problem
        time.sleep(_LOOK_EVERY_S)


def _mismatch(move: Move, found: HubIdentity) -> str:
    """Return why who answers is not the hub that was started, "" when it is."""
    head, state = move.head(move.target), load_state(move.directory)
    if head is None or state is None:
        return "the new hub has not started yet"
    if found.hub_id != head.hub_id:
        return f"the URL leads to another hub, {found.hub_id}"
    if head.writer.dir != state.dir_id:
        return "the new hub has not taken the prefix yet"
    if (found.epoch, found.writer) != (head.epoch, head.writer.describe()):
        return f"the URL leads to {found.writer or 'a hub'} of epoch {found.epoch}, the old one"
    return ""


def _ended(process: "subprocess.Popen[bytes]", log: Path) -> Refused:
    tail = log.read_bytes()[-_LOG_TAIL:].decode(errors="replace").strip().splitlines()
    last = tail[-1] if tail else "without a word"
    return Refused(
        f"the new hub has ended with {process.returncode}: {last}",
        op="start",
        object=str(log),
        hint="see its log; when it is well, run this again: it goes on here",
    )
