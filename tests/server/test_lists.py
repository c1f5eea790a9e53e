"""Lists: selectors, paging, and what a resourceVersion asks for."""

import base64

import pytest

from hub.http import listing
from tests.hubs import InProcess
from tests.server.support import CLUSTERS, ROOT_CA, TABLE, config_maps, named, untyped

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def fill(hub: InProcess, ns: str, names: str) -> None:
    for name in names:
        labels = {"even": "yes" if ord(name) % 2 == 0 else "no", "name": name}
        body = {"metadata": {"name": name, "labels": labels}}
        await hub.admin.create(config_maps(ns), body)


async def names_of(hub: InProcess, path: str) -> list[str]:
    """Names in a list, without what every namespace has."""
    found = [item["metadata"]["name"] for item in (await hub.admin.get(path))["items"]]
    return [name for name in found if name != ROOT_CA]


async def test_a_list_has_its_kind_and_the_revision_of_the_store(hub: InProcess, ns: str) -> None:
    last = await hub.admin.create(config_maps(ns), named("a"))
    found = await hub.admin.get(config_maps(ns))
    assert list(found) == ["kind", "apiVersion", "metadata", "items"]
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(found["metadata"]["resourceVersion"]) >= int(last["metadata"]["resourceVersion"])
    assert found["items"][0] == untyped(last)
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", ROOT_CA]


async def test_an_empty_list_has_items(hub: InProcess, ns: str) -> None:
    assert (await hub.admin.get(f"/api/v1/namespaces/{ns}/secrets"))["items"] == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=even%3Dyes", "bd"),
        ("labelSelector=even!%3Dyes", "ac"),
        ("labelSelector=name%20in%20(a,d)", "ad"),
        ("labelSelector=name%20notin%20(a,d),even", "bc"),
        ("labelSelector=!even", ""),
        ("fieldSelector=metadata.name%3Dc", "c"),
        ("fieldSelector=metadata.name!%3Dc", "abd"),
        ("fieldSelector=metadata.name%3Dc&labelSelector=even%3Dyes", ""),
        ("fieldSelector=metadata.name%3Dc,metadata.name%3Dd", ""),
        ("fieldSelector=metadata.namespace%3Ddefault", ""),
        ("fieldSelector=metadata.name%3Da%00b", ""),
        (f"fieldSelector=metadata.name%3D{'x' * 5000}", ""),
    ],
)
async def test_selectors_select(hub: InProcess, ns: str, query: str, expected: str) -> None:
    await fill(hub, ns, "abcd")
    assert await names_of(hub, f"{config_maps(ns)}?{query}") == list(expected)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("labelSelector=%3D", 400),
        ("fieldSelector=spec.x%3D1", 400),
        ("resourceVersion=abc", 400),
        ("resourceVersion=-1", 400),
        ("limit=x", 400),
        ("continue=nonsense", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422),
        ("resourceVersionMatch=Sometimes&resourceVersion=1", 422),
        ("sendInitialEvents=true", 422),
        ("watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1", 422),
        ("watch=1&sendInitialEvents=true", 422),
        ("watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", 422),
    ],
)
async def test_options_that_mean_nothing_are_refused(
    hub: InProcess, ns: str, query: str, code: int
) -> None:
    answer = await hub.admin.call("GET", f"{config_maps(ns)}?{query}")
    assert answer.status == code
    if code == 422:
        assert answer.obj()["message"].startswith('ListOptions.meta.k8s.io "" is invalid: ')


async def test_pages_follow_each_other_in_key_order(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abcde")
    path = f"{config_maps(ns)}?limit=2"
    pages, token = [], ""
    revisions, remaining = set(), []
    while True:
        page = await hub.admin.get(f"{path}&continue={token}")
        pages.append([item["metadata"]["name"] for item in page["items"]])
        revisions.add(page["metadata"]["resourceVersion"])
        remaining.append(page["metadata"].get("remainingItemCount"))
        token = page["metadata"].get("continue", "")
        if not token:
            break
        await hub.admin.create(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "x-"}}
        )
    assert pages == [["a", "b"], ["c", "d"], ["e", ROOT_CA]]
    assert len(revisions) == 1
    assert remaining == [4, 2, None]


async def test_pages_of_a_selection_do_not_count_what_remains(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abcdef")
    page = await hub.admin.get(f"{config_maps(ns)}?limit=1&labelSelector=even%3Dyes")
    assert [item["metadata"]["name"] for item in page["items"]] == ["b"]
    assert set(page["metadata"]) == {"resourceVersion", "continue"}
    token = page["metadata"]["continue"]
    rest = await names_of(hub, f"{config_maps(ns)}?labelSelector=even%3Dyes&continue={token}")
    assert rest == ["d", "f"]


async def test_pages_cross_namespaces_and_tables(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abc")
    seen: list[tuple[str, str]] = []
    token = ""
    while True:
        path = f"/api/v1/configmaps?limit=2&continue={token}"
        page = (await hub.admin.call("GET", path, accept=TABLE)).obj()
        for row in page["rows"]:
            meta = row["object"]["metadata"]
            seen.append((meta["namespace"], meta["name"]))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert [(ns, x) for x in ("a", "b", "c", ROOT_CA)] == [pair for pair in seen if pair[0] == ns]
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "inside",
    [
        b'{"v":"meta.k8s.io/v1","rv":1,"start":"a\\u0000b\\u0000"}',
        b'{"v":"meta.k8s.io/v1","rv":1,"start":"a"}',
        b'{"v":"meta.k8s.io/v1","rv":0,"start":"a\\u0000"}',
        b'{"v":"meta.k8s.io/v2","rv":1,"start":"a\\u0000"}',
        b"{}",
        b"x",
    ],
)
async def test_a_forged_token_is_400(hub: InProcess, ns: str, inside: bytes) -> None:
    token = base64.urlsafe_b64encode(inside).decode().rstrip("=")
    answer = await hub.admin.call("GET", f"{config_maps(ns)}?continue={token}")
    assert (answer.status, answer.obj()["reason"]) == (400, "BadRequest")
    both = await hub.admin.call("GET", f"{config_maps(ns)}?continue={token}&resourceVersion=5")
    assert both.status == 400


async def test_a_limit_below_one_is_no_limit(hub: InProcess, ns: str) -> None:
    await fill(hub, ns, "abc")
    for limit in ("0", "-1"):
        assert await names_of(hub, f"{config_maps(ns)}?limit={limit}") == ["a", "b", "c"]


async def test_revisions_of_the_past_and_the_present_are_served(hub: InProcess, ns: str) -> None:
    made = await hub.admin.create(config_maps(ns), named("a"))
    revision = made["metadata"]["resourceVersion"]
    for query in ("resourceVersion=0", f"resourceVersion={revision}", "resourceVersion="):
        assert await names_of(hub, f"{config_maps(ns)}?{query}") == ["a"]
    matched = f"{config_maps(ns)}?resourceVersionMatch=NotOlderThan&resourceVersion={revision}"
    assert await names_of(hub, matched) == ["a"]


async def test_a_revision_of_the_future_is_504_for_lists_and_gets(
    hub: InProcess, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_WAIT_FOR_REVISION_S", 0.1)
    await hub.admin.create(config_maps(ns), named("a"))
    for path in (config_maps(ns), f"{config_maps(ns)}/a"):
        answer = await hub.admin.call("GET", f"{path}?resourceVersion=999999999")
        found = answer.obj()
        assert (answer.status, found["reason"]) == (504, "Timeout")
        assert found["details"]["retryAfterSeconds"] == 1
        assert found["details"]["causes"] == [
            {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        ]
        assert answer.headers["retry-after"] == "1"


async def test_a_large_list_arrives_whole(hub: InProcess, ns: str) -> None:
    for position in range(12):
        body = named(f"big-{position:02}", data={"x": "y" * 100_000})
        await hub.admin.create(config_maps(ns), body)
    found = await hub.admin.get(config_maps(ns))
    assert [len(item["data"].get("x", "")) for item in found["items"]] == [100_000] * 12 + [0]


async def test_field_selectors_of_kinds_select(hub: InProcess, ns: str) -> None:
    secrets = f"/api/v1/namespaces/{ns}/secrets"
    await hub.admin.create(secrets, named("a", type="example.com/x"))
    await hub.admin.create(secrets, named("b"))
    assert await names_of(hub, f"{secrets}?fieldSelector=type%3Dexample.com/x") == ["a"]
    active = await names_of(hub, "/api/v1/namespaces?fieldSelector=status.phase%3DActive")
    assert ns in active
    refused = await hub.admin.call("GET", f"{CLUSTERS}?fieldSelector=spec.x%3D1")
    assert refused.obj()["message"] == "field label not supported: spec.x"
