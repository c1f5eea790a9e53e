"""What must not be lost with the last second before a crash: it is shipped at once.

Owns that decision, with the kinds as data: a new object of a kind that says so itself
(`Kind.is_protected`), and what `RULES` has beside. Whatever is not named here waits for others to
join it (`hub.backup.pace`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hub.fleet.kinds import MANAGED_CLUSTER
from hub.meta.codec.json import decode
from hub.registry.builtin import SECRET
from hub.registry.catalog import Catalog
from hub.registry.keeping import IDENTITY
from hub.registry.requests import CSR, has_condition
from hub.store import Change, Key, Op, Store, decode_key, encode_key

Test: TypeAlias = Callable[[Change, Store], bool]
ANY = frozenset(Op)
CREATED = frozenset({Op.CREATE})


def always(_change: Change, _store: Store) -> bool:
    """Hold of every change."""
    return True


def is_of_a_cluster(change: Change, store: Store) -> bool:
    """Whether the namespace of an object is that of a ManagedCluster, which has its name."""
    _, namespace, _ = decode_key(change.key)
    return store.get(encode_key(MANAGED_CLUSTER.id, "", namespace)) is not None


def is_answered(change: Change, _store: Store) -> bool:
    """Whether a certificate request got a decision or its certificate by this change."""
    if change.previous is None:
        return False
    new, old = decode(change.value), decode(change.previous())
    if any(has_condition(new, it) and not has_condition(old, it) for it in ("Approved", "Denied")):
        return True
    certificate = (new.get("status") or {}).get("certificate")
    return bool(certificate) and certificate != (old.get("status") or {}).get("certificate")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which operations on a resource are protected, and what must hold of the change."""

    ops: frozenset[Op]
    holds: Test = always


RULES: Mapping[str, Rule] = {
    SECRET.id: Rule(frozenset({Op.CREATE, Op.UPDATE}), is_of_a_cluster),
    CSR.id: Rule(frozenset({Op.UPDATE}), is_answered),
    decode_key(IDENTITY)[0]: Rule(ANY),
    # hosted control planes: their definitions come from outside and cannot say it themselves
    "hostedclusters.hypershift.openshift.io": Rule(CREATED),
    "nodepools.hypershift.openshift.io": Rule(CREATED),
}
"""By resource (`Kind.id`)."""


class Protected:
    """Says of a change whether it is to be shipped at once."""

    def __init__(self, kinds: Catalog, store: Store) -> None:
        self._kinds, self._store = kinds, store

    def __call__(self, change: Change) -> bool:
        """Whether `change` is protected; most are ruled out by their resource alone."""
        rule = RULES.get(resource := _resource(change.key))
        if rule is not None and change.op in rule.ops and rule.holds(change, self._store):
            return True
        if change.op is not Op.CREATE:
            return False
        kind = self._kinds.by_id(resource)
        return kind is None or kind.is_protected  # None: of a definition that is gone by now


def _resource(key: Key) -> str:
    return key[: key.index(0)].decode()
