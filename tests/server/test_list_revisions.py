"""Lists at a revision: pages of one state, exact revisions, and what comes once the log is cut.

The Statuses are those of a recorded kube-apiserver (kubectl 1.35 against expired revisions).
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import pytest
import pytest_asyncio

from hub import server
from hub.clock import Clock
from hub.meta import Obj
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.registry.options import decode_continue, encode_continue
from hub.store import Store
from tests.hubs import Api, InProcess, running_hub
from tests.server.support import TABLE, named

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOO_OLD = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "The resourceVersion for the provided list is too old.",
    "reason": "Expired",
    "code": 410,
}
PAGE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start"
    " a new list without the continue parameter, or use the continue token in this response to"
    " retrieve the remainder of the results. Continuing with the provided token results in an"
    " inconsistent list - objects that were created, modified, or deleted between the time the"
    " first chunk was returned and now may show up in the list."
)


@dataclass(slots=True)
class Cuttable:
    """A hub whose log a test may cut."""

    admin: Api
    store: Store


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cuttable(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cuttable]:
    engines: list[Engine] = []

    class Seen(Engine):
        def __init__(
            self, store: Store, catalog: Catalog, clock: Clock, *, sealed: Iterable[str] = ()
        ) -> None:
            super().__init__(store, catalog, clock, sealed=sealed)
            engines.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Engine", Seen)
        async with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
            yield Cuttable(hub.admin, engines[0].store)


@pytest_asyncio.fixture(loop_scope="module")
async def place(cuttable: Cuttable, name: str) -> str:
    """The Secrets of a fresh namespace of that hub, m1 to m7."""
    await cuttable.admin.create("/api/v1/namespaces", named(name))
    for number in range(1, 8):
        await cuttable.admin.create(secrets(name), named(f"m{number}", data={"x": "b2xk"}))
    return secrets(name)


def secrets(namespace: str) -> str:
    """A kind of which controllers make no objects."""
    return f"/api/v1/namespaces/{namespace}/secrets"


def names(found: Obj) -> list[str]:
    return [str(item["metadata"]["name"]) for item in found["items"]]


async def pages(api: Api, path: str) -> list[Obj]:
    """Read all pages, deleting, changing and adding between them."""
    found: list[Obj] = []
    token = ""
    while True:
        found.append(await api.get(f"{path}&continue={token}"))
        token = found[-1]["metadata"].get("continue", "")
        if not token:
            return found
        await disturb(api, path.partition("?")[0], len(found))


async def disturb(api: Api, path: str, turn: int) -> None:
    await api.call("DELETE", f"{path}/m{turn}")
    await api.call("DELETE", f"{path}/m{8 - turn}")
    await api.patch(f"{path}/m4", {"data": {"x": f"bmV{turn}"}})
    await api.create(path, named(f"m{turn}x"))


async def test_all_pages_show_the_state_at_the_first_ones_revision(hub: InProcess, ns: str) -> None:
    path = secrets(ns)
    for number in range(1, 8):
        await hub.admin.create(path, named(f"m{number}", data={"x": "b2xk"}))
    before = await hub.admin.get(path)
    found = await pages(hub.admin, f"{path}?limit=3")
    assert [item for page in found for item in page["items"]] == before["items"]
    assert len({page["metadata"]["resourceVersion"] for page in found}) == 1
    remaining = [page["metadata"].get("remainingItemCount") for page in found]
    assert remaining == [4, 1, None]
    assert names(await hub.admin.get(path)) == ["m1x", "m2x", "m3", "m4", "m5"]


async def test_pages_over_all_namespaces_go_on_the_same_way(hub: InProcess, ns: str) -> None:
    path = secrets(ns)
    for number in range(1, 8):
        await hub.admin.create(path, named(f"m{number}", data={"x": "b2xk"}))
    everything = "/api/v1/secrets"
    before = (await hub.admin.get(everything))["items"]
    items: list[Obj] = []
    token, turn = "", 0
    while turn == 0 or token:
        turn += 1
        page = await hub.admin.get(f"{everything}?limit=4&continue={token}")
        items += page["items"]
        token = page["metadata"].get("continue", "")
        if turn < 4:
            await disturb(hub.admin, path, turn)
    assert items == before


async def test_selected_pages_show_labels_as_they_were(hub: InProcess, ns: str) -> None:
    path = secrets(ns)
    for name in "abcd":
        body = {"metadata": {"name": name, "labels": {"set": "in" if name != "b" else "out"}}}
        await hub.admin.create(path, body)
    query = f"{path}?limit=1&labelSelector=set%3Din"
    first = await hub.admin.get(query)
    await hub.admin.patch(f"{path}/b", {"metadata": {"labels": {"set": "in"}}})
    await hub.admin.patch(f"{path}/c", {"metadata": {"labels": {"set": "out"}}})
    token = first["metadata"]["continue"]
    second = await hub.admin.get(f"{query}&limit=5&continue={token}")
    assert (names(first), names(second)) == (["a"], ["c"])
    assert "remainingItemCount" not in first["metadata"]


@pytest.mark.parametrize("query", ["resourceVersionMatch=Exact&", "limit=100&"])
async def test_an_exact_revision_is_shown_as_it_was(hub: InProcess, ns: str, query: str) -> None:
    path = secrets(ns)
    made = await hub.admin.create(path, named("a", data={"x": "MQ=="}))
    await hub.admin.create(path, named("b"))
    then = await hub.admin.get(path)
    revision = then["metadata"]["resourceVersion"]
    await hub.admin.call("DELETE", f"{path}/b")
    await hub.admin.patch(f"{path}/a", {"data": {"x": "Mg=="}})
    assert await hub.admin.get(f"{path}?{query}resourceVersion={revision}") == then
    born = made["metadata"]["resourceVersion"]
    assert names(await hub.admin.get(f"{path}?{query}resourceVersion={born}")) == ["a"]
    later = await hub.admin.get(
        f"{path}?resourceVersionMatch=NotOlderThan&resourceVersion={revision}&limit=9"
    )
    assert (names(later), later["items"][-1]["data"]) == (["a"], {"x": "Mg=="})


async def test_an_exact_revision_is_paged_at_that_revision(hub: InProcess, ns: str) -> None:
    path = secrets(ns)
    for number in range(1, 8):
        await hub.admin.create(path, named(f"m{number}", data={"x": "b2xk"}))
    then = await hub.admin.get(path)
    revision = then["metadata"]["resourceVersion"]
    await disturb(hub.admin, path, 1)
    first = await hub.admin.get(f"{path}?limit=3&resourceVersion={revision}")
    token = first["metadata"]["continue"]
    await disturb(hub.admin, path, 2)
    rest = await hub.admin.get(f"{path}?continue={token}")
    assert first["items"] + rest["items"] == then["items"]
    assert rest["metadata"] == {"resourceVersion": revision}


async def test_a_page_of_a_table_is_of_the_same_state(hub: InProcess, ns: str) -> None:
    path = secrets(ns)
    for number in range(1, 8):
        await hub.admin.create(path, named(f"m{number}", data={"x": "b2xk"}))
    first = (await hub.admin.call("GET", f"{path}?limit=2", accept=TABLE)).obj()
    await disturb(hub.admin, path, 3)
    token = first["metadata"]["continue"]
    rest = (await hub.admin.call("GET", f"{path}?continue={token}", accept=TABLE)).obj()
    shown = [row["cells"][0] for row in first["rows"] + rest["rows"]]
    assert shown == [f"m{number}" for number in range(1, 8)]


async def test_a_revision_before_the_log_is_410(cuttable: Cuttable, place: str) -> None:
    revision = cuttable.store.revision
    await cuttable.admin.patch(f"{place}/m1", {"data": {"x": "bmV3"}})
    await cuttable.store.compact_log(cuttable.store.revision)
    for query in ("resourceVersionMatch=Exact", "limit=3"):
        answer = await cuttable.admin.call("GET", f"{place}?{query}&resourceVersion={revision}")
        assert (answer.status, answer.obj()) == (410, TOO_OLD)
    assert names(await cuttable.admin.get(f"{place}?resourceVersion={revision}"))[0] == "m1"


async def test_a_token_from_before_the_log_brings_one_to_go_on_with(
    cuttable: Cuttable, place: str
) -> None:
    first = await cuttable.admin.get(f"{place}?limit=4")
    token = first["metadata"]["continue"]
    await disturb(cuttable.admin, place, 1)
    await cuttable.store.compact_log(cuttable.store.revision)
    answer = await cuttable.admin.call("GET", f"{place}?limit=3&continue={token}")
    _, start = decode_continue(token)
    fresh = encode_continue(-1, start)
    expected = {**TOO_OLD, "metadata": {"continue": fresh}, "message": PAGE_TOO_OLD}
    assert (answer.status, answer.obj()) == (410, expected)
    now = int((await cuttable.admin.get(place))["metadata"]["resourceVersion"])
    rest = await cuttable.admin.get(f"{place}?limit=2&continue={fresh}")
    assert names(rest) == ["m5", "m6"]
    assert int(rest["metadata"]["resourceVersion"]) >= now
    assert "continue" not in rest["metadata"]


async def test_a_token_of_a_lost_future_is_410_too(cuttable: Cuttable, place: str) -> None:
    """As after a restore from an older snapshot: the client goes on from what there is."""
    token = encode_continue(cuttable.store.revision + 1000, "m5")
    answer = await cuttable.admin.call("GET", f"{place}?continue={token}")
    assert (answer.status, answer.obj()["metadata"]) == (
        410,
        {"continue": encode_continue(-1, "m5")},
    )


async def test_a_token_of_one_namespace_does_not_fit_all(hub: InProcess, ns: str) -> None:
    await hub.admin.create(secrets(ns), named("a"))
    token = encode_continue(1, "a")
    answer = await hub.admin.call("GET", f"/api/v1/secrets?continue={token}")
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
