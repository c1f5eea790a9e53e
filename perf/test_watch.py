"""What one event costs with thousands of watchers: found, encoded once, handed to each."""

from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hub.fleet.kinds import CLUSTER_MANAGEMENT_ADDON, MANAGED_CLUSTER
from hub.meta.codec.json import decode
from hub.meta.selectors import parse_field_selector, parse_label_selector
from hub.registry.kind import Kind
from hub.registry.objects import index_of
from hub.registry.watch import Variant, Watcher, WatchHub
from hub.store import Change, Index, Op, Revision, encode_key
from perf.fleet import cluster_documents

_DOCUMENT = cluster_documents(1, 1)[0]


def _watchers(hub: WatchHub, kind: Kind, names: list[str]) -> list[list[bytes]]:
    """Open a watch for each name ("" is for all objects); return what each gets."""
    variant = Variant(("v1",), lambda document: document)
    got: list[list[bytes]] = []
    for name in names:
        lines: list[bytes] = []
        got.append(lines)
        watcher = Watcher(
            kind=kind,
            namespace="",
            name=name,
            labels=parse_label_selector(""),
            fields=parse_field_selector(f"metadata.name={name}" if name else ""),
            variant=variant,
            sink=lines.append,
            since=Revision(0),
        )
        hub.add(watcher)
    return got


def _change(kind: Kind, name: str, revision: int) -> Change:
    index: Index = index_of(kind, decode(_DOCUMENT))
    key = encode_key(kind.id, "", name)
    return Change(Op.UPDATE, key, Revision(revision), _DOCUMENT, index, index, lambda: _DOCUMENT)


@pytest.mark.parametrize("watchers", [100, 3000])
def test_showing_one_event_to_all(benchmark: BenchmarkFixture, watchers: int) -> None:
    kind = CLUSTER_MANAGEMENT_ADDON
    hub = WatchHub({kind.id: kind}.get)
    got = _watchers(hub, kind, [""] * watchers)
    revisions, shown = count(1), []

    def prepare() -> tuple[tuple[list[Change]], dict[str, object]]:
        shown.append(next(revisions))
        return ([_change(kind, "addon", shown[-1])],), {}

    benchmark.pedantic(hub.show, setup=prepare, rounds=50)
    assert all(len(lines) == len(shown) for lines in got)
    assert len({id(lines[-1]) for lines in got}) == 1, "the event was encoded more than once"


def test_finding_the_one_watcher_of_3000_that_an_event_concerns(
    benchmark: BenchmarkFixture,
) -> None:
    kind = MANAGED_CLUSTER
    hub = WatchHub({kind.id: kind}.get)
    got = _watchers(hub, kind, [f"cluster-{number}" for number in range(3000)])
    revisions, shown = count(1), []

    def prepare() -> tuple[tuple[list[Change]], dict[str, object]]:
        shown.append(next(revisions))
        return ([_change(kind, "cluster-1500", shown[-1])],), {}

    benchmark.pedantic(hub.show, setup=prepare, rounds=500)
    assert [len(lines) for lines in got if lines] == [len(shown)]
