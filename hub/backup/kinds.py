"""The hub's own kinds: Hub and HubSnapshot, group ``hublet.io``.

Owns their description. Clients only read them; `hub.backup.objects` writes them. They are volatile:
outside log, state hash and snapshots, so that no hub is ever restored with what another one said of
itself.
"""

from hub.backup.schema import HUB as HUB_SCHEMA
from hub.backup.schema import HUB_COLUMNS, HUB_SNAPSHOT, SNAPSHOT_COLUMNS
from hub.fleet.custom import SchemaStrategy, view_from
from hub.fleet.schema.node import Node
from hub.meta import Obj
from hub.registry.kind import Kind
from hub.registry.strategy import Occasion

GROUP, VERSION = "hublet.io", "v1alpha1"
READ_VERBS = ("get", "list", "watch")
HUB_NAME = "hub"
_KEEPER = "the hub keeps it and clients can only read it"


class HubStrategy(SchemaStrategy):
    """A Hub has the uid of the hub's identity: the same object wherever the hub is restored."""

    def prepare_create(self, obj: Obj, occasion: Occasion) -> None:
        """Take the uid from the identity."""
        del occasion
        obj["metadata"]["uid"] = obj["status"]["identity"]["hubID"]


HUB = Kind(
    kind="Hub",
    plural="hubs",
    singular="hub",
    views=(view_from(GROUP, VERSION, HUB_SCHEMA, HUB_COLUMNS),),
    is_namespaced=False,
    strategy=HubStrategy(HUB_SCHEMA),
    subresources=("release", "snapshot"),
    verbs=READ_VERBS,
    is_custom=True,
    is_volatile=True,
    is_exact=True,
    keeper=_KEEPER,
)
SNAPSHOT = Kind(
    kind="HubSnapshot",
    plural="hubsnapshots",
    singular="hubsnapshot",
    short_names=("hsnap",),
    views=(view_from(GROUP, VERSION, HUB_SNAPSHOT, SNAPSHOT_COLUMNS),),
    is_namespaced=False,
    strategy=SchemaStrategy(HUB_SNAPSHOT),
    verbs=READ_VERBS,
    is_custom=True,
    is_volatile=True,
    is_exact=True,
    keeper=_KEEPER,
)
OWN = (HUB, SNAPSHOT)
OWN_SCHEMAS: dict[str, Node] = {HUB.id: HUB_SCHEMA, SNAPSHOT.id: HUB_SNAPSHOT}
"""The schemas that OpenAPI shows, by `Kind.id`."""
