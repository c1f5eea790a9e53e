"""What authentication and authorisation need to know of stored objects, kept current."""

from typing import Literal, cast

from hub.auth.escalation import EscalationGuard
from hub.auth.rbac import Authorizer
from hub.meta import Obj
from hub.registry.builtin import SECRET, SERVICE_ACCOUNT
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.registry.objects import is_deleting, meta_of
from hub.registry.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from hub.registry.strategy import Occasion
from hub.registry.watch import Event
from hub.store import Op

_RbacKind = Literal["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"]
_RBAC = (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING)


def follow_rbac(engine: Engine, authorizer: Authorizer) -> None:
    """Load every role and binding into `authorizer`, and keep it current."""

    def changed(event: Event) -> None:
        obj = None if event.change.op is Op.DELETE else event.obj
        kind = cast("_RbacKind", event.kind.kind)
        authorizer.apply(kind, event.namespace, event.name, obj)

    for kind in _RBAC:
        engine.watches.listen(kind, changed)
        for obj in engine.each(kind):
            meta = meta_of(obj)
            name, namespace = str(meta["name"]), str(meta.get("namespace") or "")
            authorizer.apply(cast("_RbacKind", kind.kind), namespace, name, obj)


def guard_rbac(engine: Engine, authorizer: Authorizer) -> None:
    """Let nobody write roles and bindings that give more than they hold."""
    guard = EscalationGuard(authorizer)

    def admit(kind: Kind) -> None:
        def admission(new: Obj, old: Obj | None, occasion: Occasion) -> None:
            guard.check(occasion.user, new, old, plural=kind.plural)

        engine.admit(kind, admission)

    for kind in _RBAC:
        admit(kind)


class Lookups:
    """The look-ups that token verification asks for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find_secret(self, namespace: str, name: str) -> Obj | None:
        """Return a Secret as stored."""
        return self._engine.peek(SECRET, name, namespace)

    def find_uid(self, kind: str, namespace: str, name: str) -> str | None:
        """Return the uid of the living object that a token stands for."""
        found = {"ServiceAccount": SERVICE_ACCOUNT, "Secret": SECRET}.get(kind)
        obj = self._engine.peek(found, name, namespace) if found is not None else None
        if obj is None or is_deleting(obj):
            return None
        return str(meta_of(obj)["uid"])
