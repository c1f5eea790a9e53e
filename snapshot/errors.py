"""What can go wrong with snapshots.

    SnapshotError                 exit 1
    +-- RemoteError               exit 6   the object store did not do what was asked
    |   +-- RemoteUnavailable     exit 6   no (clear) answer; a write may have landed
    |   +-- RemoteDenied          exit 6   credentials or permissions
    |   +-- RemoteInvalid         exit 2   the URL or its options make no sense
    |   +-- ObjectMissing         exit 6   no object of that name
    |   +-- ObjectExists          exit 6   create-only met an object
    |   +-- PreconditionFailed    exit 6   compare-and-swap met another object
    +-- IntegrityError            exit 4   what was read is not what was written
    |   +-- SegmentCorrupt        exit 4   a segment contradicts its hash, seal or format
    |   +-- ChainBroken           exit 4   a segment is missing or does not follow its predecessor
    |   +-- Unreachable           exit 4   no whole segments lead to the point asked for
    |   +-- HeadCorrupt           exit 4   HEAD does not parse or contradicts itself
    |   +-- StateMismatch         exit 4   the state rebuilt has another hash than promised
    +-- UnsupportedFormat         exit 10  written by a newer release
    +-- KeyMismatch               exit 7   the hub key at hand is not the one needed
    +-- KeyMissing                exit 7   there is no hub key file, or it does not parse
    +-- Fenced                    exit 5   another writer took the epoch
    +-- HeadGone                  exit 5   somebody deleted HEAD under a writer
    +-- ChainMoved                exit 5   an earlier, unanswered write of ours had landed
    +-- ForeignPrefix             exit 8   the prefix belongs to another hub
    +-- StartRefused              exit 8   the arbiter says no
    +-- Refused                   exit 8   it would hurt a hub that runs, or lose changes
    +-- CatchUpNeeded             exit 8   the store must be built anew from the bucket first
    +-- TargetNotEmpty            exit 9   what is there is not a hub's; restore leaves it alone
    +-- TargetBusy                exit 9   a hub or another restore is at work on the directory
    +-- NothingToRestore          exit 3   the prefix holds no full snapshot, or none that old
    +-- TargetUnclear             exit 2   what to restore is no revision, time or position
    +-- PinInvalid                exit 2   a pin's name is taken, unknown or no name

Every error says the operation, the object and (where there is one) the position, and what to do
next (`hint`). `recoverable`: trying the same again later can succeed without a human.
"""

from typing import ClassVar


class SnapshotError(Exception):
    """Anything that went wrong with snapshots; `exit_code` is what a command line ends with."""

    exit_code: ClassVar[int] = 1
    recoverable: ClassVar[bool] = False
    default_hint: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        op: str,
        object: str = "",  # noqa: A002  the field's name in the error tree
        position: str = "",
        hint: str = "",
    ) -> None:
        where = f" ({object}{' at ' if object and position else ''}{position})"
        super().__init__(f"{op}: {message}{where if object or position else ''}")
        self.message, self.op, self.object, self.position = message, op, object, position
        self.hint = hint or self.default_hint


class RemoteError(SnapshotError):
    """The object store did not do what was asked."""

    exit_code = 6


class RemoteUnavailable(RemoteError):  # noqa: N818  the field's words, see the tree above
    """No answer, or none that tells whether the write landed; read back before believing any."""

    recoverable = True
    default_hint = "check that the object store is up and reachable, then run the command again"


class RemoteDenied(RemoteError):  # noqa: N818  see RemoteUnavailable
    """The object store knows us not, or not well enough."""

    default_hint = (
        "check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or a profile) "
        "and the bucket policy"
    )


class RemoteInvalid(RemoteError):  # noqa: N818  see RemoteUnavailable
    """The URL of the object store, or an option in it, makes no sense."""

    exit_code = 2
    default_hint = (
        "use file:///dir or s3://bucket/prefix?endpoint=https://host&region=...&path_style=true"
    )


class ObjectMissing(RemoteError):  # noqa: N818  see RemoteUnavailable
    """There is no object of that name."""


class ObjectExists(RemoteError):  # noqa: N818  see RemoteUnavailable
    """A create-only write met an object."""


class PreconditionFailed(RemoteError):  # noqa: N818  see RemoteUnavailable
    """A compare-and-swap met another object than expected."""


class IntegrityError(SnapshotError):
    """What was read is not what was written."""

    exit_code = 4
    default_hint = "put the object back from a copy or an older version of it"


class SegmentCorrupt(IntegrityError):  # noqa: N818  see RemoteUnavailable
    """A segment contradicts its hash, its seal or its format."""


class ChainBroken(IntegrityError):  # noqa: N818  see RemoteUnavailable
    """A segment of the chain is missing, or does not follow its predecessor."""

    default_hint = "look for lifecycle rules on the bucket, and put the segment back from a copy"


class Unreachable(IntegrityError):  # noqa: N818  see RemoteUnavailable
    """No path of whole segments leads to the point asked for.

    `newest` is the newest position before it that can be reached; None: there is none.
    """

    default_hint = (
        "put the segment back from a copy, or plan and restore the newest point that can be "
        "reached: --to-last-consistent"
    )

    def __init__(self, message: str, *, op: str, object: str = "", newest: int | None) -> None:  # noqa: A002  see SnapshotError
        super().__init__(message, op=op, object=object)
        self.newest = newest


class HeadCorrupt(IntegrityError):  # noqa: N818  see RemoteUnavailable
    """HEAD does not parse, or contradicts itself."""

    default_hint = "put HEAD back from an older version of it"


class StateMismatch(IntegrityError):  # noqa: N818  see RemoteUnavailable
    """The state rebuilt from the segments has another hash than the chain promises."""

    default_hint = "keep the prefix as it is, and report this"


class UnsupportedFormat(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The object is of a format this release does not read."""

    exit_code = 10
    default_hint = "use the release that wrote it, or a newer one"


class KeyMismatch(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The hub key at hand is not the one the snapshot was sealed with."""

    exit_code = 7
    default_hint = (
        "check the URL, the prefix may belong to another hub; if it does not, give the hub's own "
        "key with --key-file: it was written beside the data directory as DIR.key"
    )


class KeyMissing(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """There is no hub key file where one was expected, or it does not parse."""

    exit_code = 7
    default_hint = (
        "give the hub's own key with --key-file; "
        "it was written beside the data directory as DIR.key"
    )


class Fenced(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """Another writer took the epoch: this one must stop writing at once.

    `by` describes the writer that HEAD names now.
    """

    exit_code = 5
    default_hint = (
        "this hub has stopped; keep its directory, and restore to go on from the bucket "
        "(only one hub may write a prefix)"
    )

    def __init__(self, message: str, *, by: str, op: str, object: str, position: str = "") -> None:  # noqa: A002  see SnapshotError
        super().__init__(message, op=op, object=object, position=position)
        self.by = by


class HeadGone(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """HEAD was there when this writer began and is gone now; it is never made again by a writer."""

    exit_code = 5
    default_hint = (
        "somebody deleted HEAD: stop the hub and put HEAD back from a copy or versioned bucket"
    )


class ChainMoved(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """A write that had stayed unanswered turned out to have landed; what was cut no longer fits."""

    exit_code = 5
    recoverable = True
    default_hint = "cut the segment again from the position of HEAD"


class ForeignPrefix(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The prefix belongs to another hub."""

    exit_code = 8
    default_hint = "give every hub a prefix of its own"


class StartRefused(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The arbiter refuses to start this directory on this prefix."""

    exit_code = 8


class Refused(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """What was asked would hurt a hub that runs, or lose changes that are nowhere else."""

    exit_code = 8


class CatchUpNeeded(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The bucket is ahead of the directory; whoever starts the hub restores first."""

    exit_code = 8
    default_hint = "run: hub-restore restore --from URL --into DIR"


class PinInvalid(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The name of a pin is taken, unknown, or no name."""

    exit_code = 2


class TargetUnclear(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """What to restore to is no revision, time or position."""

    exit_code = 2
    default_hint = (
        "give --to latest, a revision (1200), a time (2026-12-01T03:15:00Z) or a position (@57), "
        "as hub-restore list shows them"
    )


class TargetNotEmpty(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The target is not empty and not a hub's: a restore leaves it alone."""

    exit_code = 9
    default_hint = "name a new directory or that of a hub, or move what is there away first"


class TargetBusy(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """A hub or another restore is at work on the directory."""

    exit_code = 9
    default_hint = "stop the hub, or wait for the other hub-restore to end"


class NothingToRestore(SnapshotError):  # noqa: N818  see RemoteUnavailable
    """The prefix holds no full snapshot."""

    exit_code = 3
    default_hint = "check the URL: one prefix is one hub, and HEAD lies at its root"
