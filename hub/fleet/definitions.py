"""CustomResourceDefinitions that tell of OCM's kinds, for tools that look for them.

Owns the objects. The kinds themselves are built in: the definitions of those are brought back to
what is served at every start, cannot be deleted, and changing one changes nothing. ClusterManager
is an ordinary definition.
"""

from hub.fleet.kinds import FLEET
from hub.fleet.schema import cluster_manager
from hub.fleet.schema.node import Node
from hub.fleet.schema.table import Column, columns_of, schema_of
from hub.meta import Obj
from hub.registry.bootstrap import ensure
from hub.registry.engine import Engine
from hub.registry.kind import Kind, View

OWN_DEFINITIONS = frozenset(kind.id for kind in FLEET)
"""The names of the definitions of built-in kinds."""


async def ensure_definitions(engine: Engine, kind: Kind) -> None:
    """Create what is missing, and bring back what a client changed of the built-in ones."""
    for own in FLEET:
        wanted = definition_of(own)
        await ensure(engine, kind, wanted)

        def restore(obj: Obj, spec: Obj = wanted["spec"]) -> Obj:
            return {**obj, "spec": spec}

        await engine.modify(kind, own.id, restore)
    await ensure(engine, kind, _CLUSTER_MANAGER)


def definition_of(kind: Kind) -> Obj:
    """Return the definition of one of the fleet's kinds."""
    group = kind.storage.group
    names: Obj = {
        "plural": kind.plural,
        "singular": kind.singular,
        "kind": kind.kind,
        "listKind": kind.list_kind,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return {
        "metadata": {"name": kind.id},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "versions": [_version(kind, view) for view in kind.views],
        },
    }


def _version(kind: Kind, view: View) -> Obj:
    schema = schema_of(view.group, view.version, kind.kind)
    columns = columns_of(view.group, view.version, kind.kind)
    return _version_of(view.version, schema, columns, is_storage=view is kind.storage)


def _version_of(name: str, schema: Node, columns: tuple[Column, ...], *, is_storage: bool) -> Obj:
    version: Obj = {
        "name": name,
        "served": True,
        "storage": is_storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    if columns:
        version["additionalPrinterColumns"] = [
            {"name": c.name, "type": c.type_, "jsonPath": c.path} for c in columns
        ]
    return version


_CLUSTER_MANAGER: Obj = {
    "metadata": {"name": "clustermanagers.operator.open-cluster-management.io"},
    "spec": {
        "group": "operator.open-cluster-management.io",
        "names": {
            "plural": "clustermanagers",
            "singular": "clustermanager",
            "kind": "ClusterManager",
            "listKind": "ClusterManagerList",
        },
        "scope": "Cluster",
        "versions": [_version_of("v1", cluster_manager.V1, (), is_storage=True)],
    },
}
