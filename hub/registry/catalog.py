"""The kinds a hub serves, found by path or by store key.

Owns the look-up tables that routing, discovery and the watch hub use. Filled once by the
composition root, then only read.
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
    """All served kinds; immutable once built."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds = tuple(kinds)
        self._by_id = {kind.id: kind for kind in self._kinds if not kind.is_virtual}
        self._by_path: dict[tuple[str, str, str], Served] = {}
        self._by_name: dict[tuple[str, str], Served] = {}
        for kind in self._kinds:
            for view in kind.views:
                served = Served(kind, view)
                self._by_path[view.group, view.version, kind.plural] = served
                self._by_name[view.api_version, kind.kind] = served

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

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
        for kind in self._kinds:
            for view in kind.views:
                versions = groups.setdefault(view.group, [])
                if view.version not in versions:
                    versions.append(view.version)
        return {group: sorted(found, key=version_priority) for group, found in groups.items()}

    def in_version(self, group: str, version: str) -> list[Served]:
        """Return the kinds served in one group version, in the order they were declared."""
        return [
            Served(kind, view)
            for kind in self._kinds
            for view in kind.views
            if (view.group, view.version) == (group, version)
        ]
