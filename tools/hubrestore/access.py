"""The way to a prefix: opened, HEAD read, the hub key compared with it before anything else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hub import store as hub_store
from hub.clock import Clock, SystemClock
from hub.config import is_nested
from hub.store import HubKey, load_hub_key
from snapshot.chain import Chain
from snapshot.errors import (
    KeyMissing,
    NothingToRestore,
    ObjectMissing,
    SnapshotError,
    TargetNotEmpty,
)
from snapshot.head import Head, check_key, decode_head, open_head
from snapshot.layout import HEAD
from snapshot.remote import Remote, open_remote
from tools.hubrestore.options import Given


@dataclass(frozen=True, slots=True)
class Prefix:
    """An open prefix with its hub key, which HEAD's seal has proven."""

    remote: Remote
    key: HubKey
    head: Head
    clock: Clock

    def chain(self) -> Chain:
        """Return the chain, HEAD read."""
        chain = Chain(self.remote, self.key, clock=self.clock)
        chain.read_head()
        return chain


@contextmanager
def opened(given: Given) -> Iterator[Prefix]:
    """Open the prefix and the key. Raises `NothingToRestore`, `KeyMissing`, `KeyMismatch`."""
    with opened_without_key(given) as remote:
        head = read_head(remote)
        yield Prefix(remote, prove_key(given, remote, head), head, SystemClock())


@contextmanager
def opened_without_key(given: Given, url: str = "") -> Iterator[Remote]:
    """Open the prefix, or another one with the same options."""
    remote = open_remote(url or given.url, environ=environment(given))
    try:
        yield remote
    finally:
        remote.close()


def environment(given: Given) -> dict[str, str]:
    """Return the environment; flags win over it, the URL's own options over both."""
    flags = {f"HUBLET_S3_{name.upper()}": value for name, value in given.s3.items()}
    return {**os.environ, **flags}


def read_head(remote: Remote) -> Head:
    """Read HEAD; its seal is not checked. Raises `NothingToRestore`."""
    try:
        return decode_head(remote.get(HEAD).data)
    except ObjectMissing as error:
        raise _no_head(remote) from error


def _no_head(remote: Remote) -> NothingToRestore:
    """Tell a prefix that was never used from one whose HEAD is lost."""
    if next(iter(remote.list()), None) is None:
        return NothingToRestore("there is no hub here", op="read", object=remote.url)
    return NothingToRestore(
        "there are objects here, but no HEAD",
        op="read",
        object=remote.url,
        hint="check the URL: every hub has a prefix of its own, with HEAD at its root; if somebody "
        "deleted HEAD, put it back from a copy or an older version",
    )


def prove_key(given: Given, remote: Remote, head: Head) -> HubKey:
    """Load the hub key and compare it with HEAD's before anything is fetched."""
    key = load_key(given, needed=f" (this hub was sealed under the key {head.key})")
    try:
        check_key(head, key)
    except SnapshotError as error:
        error.hint = f"{given.key_path} is not its key; {error.hint}"
        raise
    open_head(remote.get(HEAD).data, key)
    return key


def load_key(given: Given, *, needed: str = "") -> HubKey:
    """Load the hub key. Raises `KeyMissing`; `needed` says which one it must be."""
    path = given.key_path
    try:
        return load_hub_key(path, outside=given.into)
    except (hub_store.KeyMismatch, OSError) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"hub key file {path} cannot be read: {error.strerror}"
        raise KeyMissing(f"{reason}{needed}", op="key", object=str(path)) from error


def refuse_inside(given: Given, url: str = "") -> None:
    """Refuse a target in the object store itself: neither would be the other's alone any more."""
    prefix, directory = url or given.url, given.directory
    if is_nested(directory, prefix):
        raise TargetNotEmpty(
            f"{directory.absolute()} and the object store {prefix} lie inside each other",
            op="restore",
            object=str(directory),
            hint="name a directory outside the object store with --into",
        )
