"""``doctor``: whether a bucket, a volume and a key are fit for a hub.

Owns the checks and what each means. One that fails ends with the exit code of what it would break.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import click

from hub.clock import SystemClock
from hub.store import DirectoryLock, Locked
from snapshot.errors import KeyMissing, SnapshotError
from snapshot.remote import FencingLevel, probe
from tools.hubrestore.access import load_key, opened_without_key
from tools.hubrestore.options import Given, into, keyed, prefixed_perhaps
from tools.hubrestore.output import print_json, size

Grade: TypeAlias = Literal["ok", "warn", "fail"]
_EXIT_TARGET, _EXIT_FENCING = 9, 5
_SHARED = ("nfs", "cifs", "smb", "9p", "fuse", "glusterfs", "lustre", "afs")
"""File systems whose locks or mapped files cannot be trusted, by how their type begins."""
_SCARCE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `exit_code` is what the command ends with when it failed."""

    name: str
    grade: Grade
    says: str
    hint: str = ""
    exit_code: int = 0


@click.command()
@prefixed_perhaps
@keyed
@into
@click.pass_context
def doctor(ctx: click.Context, /, **_flags: object) -> None:
    """Try the bucket, look at the data directory's volume, and at the key file.

    The bucket is tried with some sixty small requests under probe/, which are deleted again.
    """
    given = Given.of(ctx)
    checks = [*_bucket_checks(given), *_directory_checks(given.directory), *_key_checks(given)]
    if given.is_json:
        print_json({"checks": checks, "is_fit": all(each.grade != "fail" for each in checks)})
    else:
        for each in checks:
            click.echo(f"{each.grade:<5} {each.name}: {each.says}")
            if each.hint:
                click.echo(f"      hint: {each.hint}")
    ctx.exit(next((each.exit_code for each in checks if each.grade == "fail"), 0))


def _bucket_checks(given: Given) -> Iterator[Check]:
    if not given.url:
        yield Check("bucket", "warn", "not looked at", "name it with --from")
        return
    try:
        with opened_without_key(given) as remote:
            found = probe(remote, SystemClock())
    except SnapshotError as error:
        yield Check("bucket", "fail", str(error), error.hint, error.exit_code)
        return
    level = found.fencing_level
    if level is FencingLevel.ENFORCED:
        yield Check("bucket", "ok", f"fencing level {level.value}: of two writers one is refused")
    else:
        yield Check(
            "bucket",
            "warn",
            f"fencing level {level.value}: the bucket does not keep a second writer out",
            "never start a second hub on it; or use a bucket that keeps conditions",
        )
    for words in found.missing:
        yield Check("bucket", "warn", words)
    yield Check("clock", "ok", f"the server's is {found.clock_offset_s:+.1f} s from ours")


def _directory_checks(directory: Path) -> Iterator[Check]:
    place = next(p for p in (directory, *directory.absolute().parents) if p.exists())
    yield _file_system(place)
    yield _space(place)
    yield _permissions(directory, place)
    if directory.is_dir():
        yield _lock(directory)


def _file_system(place: Path) -> Check:
    kind = file_system_of(place)
    if kind.startswith(_SHARED):
        return Check(
            "volume",
            "fail",
            f"{place} is on {kind}, whose locks and mapped files a store cannot rely on",
            "use a block volume (ReadWriteOnce) with ext4 or xfs",
            _EXIT_TARGET,
        )
    return Check("volume", "ok", f"{place} is on {kind or 'a file system that is not known'}")


def file_system_of(place: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of the file system that a path is on, "" when it cannot be told.

    A line of ``mountinfo`` has the mount point as its fifth word, and the type after a dash.
    """
    real, best, kind = Path(os.path.realpath(place)), -1, ""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4].replace("\\040", " "))
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def _space(place: Path) -> Check:
    free = shutil.disk_usage(place).free
    if free < _SCARCE_BYTES:
        hint = "a restore needs about three times the segments' size beside what lies there"
        return Check("space", "warn", f"{size(free)} are free", hint)
    return Check("space", "ok", f"{size(free)} are free")


def _permissions(directory: Path, place: Path) -> Check:
    found = place.stat()
    mode, who = stat.filemode(found.st_mode), f"uid {found.st_uid}, gid {found.st_gid}"
    us = f"uid {os.geteuid()}, gid {os.getegid()}"
    says = f"{place} is {mode} of {who}; this process has {us}"
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        return Check(
            "permissions",
            "fail",
            says,
            f"give the pod securityContext.fsGroup: {found.st_gid} and runAsUser: {found.st_uid}, "
            "or change the owner of the volume",
            _EXIT_TARGET,
        )
    if directory == place and found.st_mode & stat.S_IROTH:
        return Check("permissions", "warn", says, f"keep others out: chmod 700 {place}")
    return Check("permissions", "ok", says)


def _lock(directory: Path) -> Check:
    try:
        DirectoryLock(directory).close()
    except Locked:
        return Check("lock", "ok", f"a hub or a restore is at work on {directory}")
    except PermissionError as error:
        return Check("lock", "fail", f"{directory}: {error.strerror}", "", _EXIT_TARGET)
    return Check("lock", "ok", f"nobody is at work on {directory}")


def _key_checks(given: Given) -> Iterator[Check]:
    path = given.key_path
    if not path.exists() and given.key_file is None:
        yield Check("key", "warn", f"there is no key file {path} yet", "name it with --key-file")
        return
    try:
        key = load_key(given)
    except KeyMissing as error:
        yield Check("key", "fail", str(error), error.hint, error.exit_code)
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    says = f"{path} has mode {mode:04o}, fingerprint {key.fingerprint}"
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Check("key", "warn", says, f"keep others out: chmod 600 {path}")
        return
    yield Check("key", "ok", says)
