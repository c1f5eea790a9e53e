"""The objects every hub starts with: namespaces, RBAC, bootstrap ServiceAccount, cluster-info.

Idempotent: what is there already is left alone, except that default roles and bindings get back
what they lack (k8s.io/kubernetes/pkg/registry/rbac/rest/storage_rbac.go).
"""

from hub.auth.bootstrap_policy import BOOTSTRAP_ACCOUNT, BOOTSTRAP_NAMESPACE, default_objects
from hub.auth.kubeconfig import server_of
from hub.auth.reconcile import complete, has_other_role, is_left_alone
from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.builtin import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
from hub.registry.engine import Engine
from hub.registry.kind import Kind
from hub.registry.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING

NAMESPACES = ("default", "kube-system", "kube-public", BOOTSTRAP_NAMESPACE)
_CLUSTER_INFO, _CLUSTER_INFO_NAMESPACE = "cluster-info", "kube-public"
_RBAC = {kind.kind: kind for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING)}


async def ensure_objects(engine: Engine, *, cluster_info: str) -> None:
    """Create what is missing.

    `cluster_info` is the kubeconfig that tells joining clusters the URL and the CA
    (kube-public/cluster-info); it is brought up to date.
    """
    for name in NAMESPACES:
        await ensure(engine, NAMESPACE, {"metadata": {"name": name}})
    for obj in default_objects():
        await _ensure_default(engine, obj)
    account = {"metadata": {"name": BOOTSTRAP_ACCOUNT, "namespace": BOOTSTRAP_NAMESPACE}}
    await ensure(engine, SERVICE_ACCOUNT, account)
    data = {"kubeconfig": cluster_info}
    meta = {"name": _CLUSTER_INFO, "namespace": _CLUSTER_INFO_NAMESPACE}
    await ensure(engine, CONFIG_MAP, {"metadata": meta, "data": data})
    await engine.modify(
        CONFIG_MAP, meta["name"], lambda obj: {**obj, "data": data}, namespace=meta["namespace"]
    )


def announced_url(engine: Engine) -> str:
    """Return the URL that cluster-info has told clients last, "" in a new hub.

    Also one that nobody gave: agents hold the listen address in their kubeconfigs as well.
    """
    info = engine.peek(CONFIG_MAP, _CLUSTER_INFO, _CLUSTER_INFO_NAMESPACE)
    return server_of(str(((info or {}).get("data") or {}).get("kubeconfig") or ""))


async def ensure(engine: Engine, kind: Kind, obj: Obj) -> None:
    """Create `obj` unless its name is taken."""
    meta = obj["metadata"]
    namespace = str(meta.get("namespace") or "")
    if engine.find(kind, str(meta["name"]), namespace) is not None:
        return
    try:
        await engine.create(kind, obj, namespace=namespace)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


async def _ensure_default(engine: Engine, obj: Obj) -> None:
    kind, meta = _RBAC[obj["kind"]], obj["metadata"]
    name, namespace = str(meta["name"]), str(meta.get("namespace") or "")
    present = engine.peek(kind, name, namespace)
    if present is not None and is_left_alone(present):
        return
    if present is not None and has_other_role(present, obj):
        await engine.delete(kind, name, namespace=namespace)
        present = None
    if present is None:
        await ensure(engine, kind, obj)
    else:
        await engine.modify(kind, name, lambda now: complete(now, obj), namespace=namespace)
