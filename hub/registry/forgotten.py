"""From where watches of a kind may resume whose deletions no log remembers.

Volatile objects are outside the log: what was deleted of them is told to whoever watches then and
to nobody later. For kinds that are to be followed exactly (`Kind.is_exact`) a watch from before the
newest deletion, or from before this process, has to list again.
"""

from functools import partial

from hub.registry.catalog import Catalog
from hub.registry.kind import Kind
from hub.registry.watch import Event, WatchHub
from hub.store import Op, Revision


class Forgotten:
    """The revision of the newest deletion of each exact kind."""

    def __init__(self, catalog: Catalog, watches: WatchHub, began: Revision) -> None:
        self._newest = {kind.id: began for kind in catalog if kind.is_exact}
        for kind in catalog:
            if kind.is_exact:
                watches.listen(kind, partial(self._note, kind))

    def _note(self, kind: Kind, event: Event) -> None:
        if event.change.op is Op.DELETE:
            self._newest[kind.id] = event.change.revision

    def oldest(self, kind: Kind) -> Revision:
        """Return the revision from which a watch of `kind` may resume; 0 when any may."""
        return self._newest.get(kind.id, Revision(0))
