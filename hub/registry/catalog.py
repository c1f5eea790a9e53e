"""The kinds a hub serves, found by path or by store key.

Owns the look-up tables that routing, discovery and the watch hub use. Filled by the composition
root; CustomResourceDefinitions put kinds in and take them out while the hub runs. Reading is a
dictionary look-up; who keeps something made of the whole compares `generation`.
"""

import re
from collections.abc import Iterable, Iterator

from hub.registry.kind import Kind, Served

_STABILITY = {"": 0, "beta": 1, "alpha": 2}


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return a sort key that puts the most stable, then newest version first.

    The order of k8s.io/apimachinery/pkg/version.CompareKubeAwareVersionStrings.

    >>> sorted(["v1alpha1", "v1", "v1beta1", "v2", "v1beta2"], key=version_priority)
    ['v2', 'v1', 'v1beta2', 'v1beta1', 'v1alpha1']
    """
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if found is None:
        return (3, 0, 0, version)
    major, stability, minor = found.groups()
    return (_STABILITY[stability or ""], -int(major), -int(minor or 0), version)


class Catalog:
    """All kinds served now. For the event loop's thread."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._entries: dict[str, tuple[Kind, tuple[Served, ...]]] = {}
        self._by_id: dict[str, Kind] = {}
        self._by_path: dict[tuple[str, str, str], Served] = {}
        self._by_name: dict[tuple[str, str], Served] = {}
        self.generation = 0
        for kind in kinds:
            self.put(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter([kind for kind, _ in self._entries.values()])

    def put(self, kind: Kind, served: Iterable[Served] | None = None) -> None:
        """Serve a kind from now on, in place of the one with the same id if there is one.

        `served`: what each of its versions is served as, when they differ in more than the view.
        """
        self.drop(kind.id)
        if served is None:
            served = [Served(kind, view) for view in kind.views if view.is_served]
        found = tuple(served)
        self._entries[kind.id] = (kind, found)
        if not kind.is_virtual:
            self._by_id[kind.id] = kind
        for each in found:
            self._by_path[each.view.group, each.view.version, kind.plural] = each
            self._by_name[each.view.api_version, kind.kind] = each
        self.generation += 1

    def drop(self, resource_id: str) -> None:
        """Serve a kind no longer; one that is not served is fine, too."""
        kind, served = self._entries.pop(resource_id, (None, ()))
        if kind is None:
            return
        self._by_id.pop(resource_id, None)
        for each in served:
            self._by_path.pop((each.view.group, each.view.version, kind.plural), None)
            self._by_name.pop((each.view.api_version, kind.kind), None)
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """Return what ``/apis/group/version/plural`` names, None if it is not served."""
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Served | None:
        """Return what an object's apiVersion and kind name, None if it is not served."""
        return self._by_name.get((api_version, kind))

    def by_id(self, resource_id: str) -> Kind | None:
        """Return the kind whose keys begin with `resource_id`, None for the hub's own records."""
        return self._by_id.get(resource_id)

    def group_versions(self) -> dict[str, list[str]]:
        """Return every group with its versions, the preferred one first; core group "" included."""
        groups: dict[str, list[str]] = {}
        for served in self._served():
            versions = groups.setdefault(served.view.group, [])
            if served.view.version not in versions:
                versions.append(served.view.version)
        return {group: sorted(found, key=version_priority) for group, found in groups.items()}

    def in_version(self, group: str, version: str) -> list[Served]:
        """Return the kinds served in one group version, in the order they were declared."""
        return [
            served
            for served in self._served()
            if (served.view.group, served.view.version) == (group, version)
        ]

    def _served(self) -> Iterator[Served]:
        for _, served in self._entries.values():
            yield from served
