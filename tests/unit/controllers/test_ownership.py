"""The graph of owner references, against a model that keeps nothing but the references."""

import random

from hub.controllers.ownership import Link, Links, OwnerGraph, links_of
from hub.store import Key


def test_links_are_read_from_owner_references() -> None:
    references = [{"uid": "1", "blockOwnerDeletion": True}, {"uid": "2"}]
    found = links_of({"metadata": {"ownerReferences": references}})
    assert found == (Link("1", is_blocking=True), Link("2", is_blocking=False))
    assert links_of({"metadata": {}}) == ()


def test_two_references_to_one_owner_block_when_either_does() -> None:
    graph = OwnerGraph()
    graph.put(Key(b"x"), (Link("1", is_blocking=True), Link("1", is_blocking=False)))
    assert graph.is_blocked("1")
    graph.put(Key(b"x"), (Link("1", is_blocking=False),))
    assert not graph.is_blocked("1")
    assert graph.dependents("1") == [b"x"]


def test_the_graph_is_what_was_put_last() -> None:
    draw = random.Random(3)
    graph, model = OwnerGraph(), dict[Key, Links]()
    for _ in range(3000):
        key = Key(b"%d" % draw.randrange(12))
        links = tuple(
            Link(str(draw.randrange(5)), draw.random() < 0.5) for _ in range(draw.randrange(3))
        )
        before = model.pop(key, ())
        if draw.random() < 0.2:
            assert graph.drop(key) == before
        else:
            assert graph.put(key, links) == before
            if links:
                model[key] = links
        assert len(graph) == len(model)
        assert (key in graph) == (key in model)
        for uid in "01234":
            wanted = {k for k, found in model.items() if any(x.uid == uid for x in found)}
            assert set(graph.dependents(uid)) == wanted
            blocks = (x.is_blocking for found in model.values() for x in found if x.uid == uid)
            assert graph.is_blocked(uid) == any(blocks)
    for key in list(model):
        graph.drop(key)
    assert graph._dependents == {}
