"""What a deletion does with the objects that name the deleted one as their owner.

Owns the three propagation policies and the two finalizers that stand for them while the garbage
collector works. Pure; the rules are those of deletionFinalizersForGarbageCollection in
k8s.io/apiserver/pkg/registry/generic/registry/store.go.

>>> finalizers_for("Foreground", ["example.com/a", "orphan"])
['example.com/a', 'foregroundDeletion']
>>> finalizers_for("", ["orphan"])
['orphan']
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from hub.meta import Obj
from hub.registry.objects import is_deleting, meta_of

FOREGROUND = "foregroundDeletion"
"""The dependents go first: the collector takes it off when none blocks any more."""

ORPHAN = "orphan"
"""The dependents stay: the collector takes their references off, then this."""

Policy: TypeAlias = Literal["", "Background", "Foreground", "Orphan"]
"""What to do with dependents; "" = what the object's finalizers say, else Background."""

_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


def finalizers_for(policy: Policy, present: Sequence[str]) -> list[str]:
    """Return the finalizers an object being deleted has: the policy given overrides the object."""
    if not policy:
        return list(present)
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    return [*kept, _FINALIZERS[policy]] if policy in _FINALIZERS else kept


def policy_of(obj: Obj) -> Policy:
    """Return the policy that an object's finalizers stand for."""
    found = meta_of(obj).get("finalizers") or ()
    if ORPHAN in found:
        return "Orphan"
    return "Foreground" if FOREGROUND in found else "Background"


def waits_for_dependents(obj: Obj) -> bool:
    """Whether an object stays, being deleted, until its dependents are gone."""
    return is_deleting(obj) and FOREGROUND in (meta_of(obj).get("finalizers") or ())


def waits_for_orphaning(obj: Obj) -> bool:
    """Whether an object stays, being deleted, until its dependents no longer name it."""
    return is_deleting(obj) and ORPHAN in (meta_of(obj).get("finalizers") or ())
