"""The Python client's dynamic half: discovery with its cache, every verb, watches, pages."""

from pathlib import Path

import pytest
import pytest_asyncio
from kubernetes import client, dynamic
from kubernetes.dynamic.discovery import EagerDiscoverer, LazyDiscoverer
from kubernetes.dynamic.exceptions import (
    ConflictError,
    NotFoundError,
    ResourceNotFoundError,
    ResourceNotUniqueError,
    UnprocessibleEntityError,
)

from hub.meta import Obj
from tests.clients.pythons import fresh, run
from tests.server.widgets import widget_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")
MERGE = "application/merge-patch+json"
CRD = {"api_version": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}


@pytest_asyncio.fixture(loop_scope="module")
async def dyn(api: client.ApiClient, tmp_path: Path) -> dynamic.DynamicClient:
    return await run(lambda: dynamic.DynamicClient(api, cache_file=str(tmp_path / "cache")))


def config_map(name: str, **data: str) -> Obj:
    meta = {"name": name, "labels": {"all": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def place(dyn: dynamic.DynamicClient) -> str:
    name = fresh()
    dyn.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": name}})
    return name


async def test_objects_live_through_every_verb(dyn: dynamic.DynamicClient) -> None:
    def tour() -> None:
        ns = place(dyn)
        maps = dyn.resources.get(api_version="v1", kind="ConfigMap")
        made = maps.create(body=config_map("a", x="1"), namespace=ns)
        assert (made.metadata.name, made.data.x) == ("a", "1")
        with pytest.raises(ConflictError):
            maps.create(body=config_map("a"), namespace=ns)
        patched = maps.patch(name="a", namespace=ns, body={"data": {"y": "2"}}, content_type=MERGE)
        assert patched.data.to_dict() == {"x": "1", "y": "2"}
        strategic = maps.patch(name="a", namespace=ns, body={"data": {"x": None}})
        assert strategic.to_dict()["data"] == {"y": "2"}
        steps = [{"op": "add", "path": "/data/z", "value": "3"}]
        by_json = maps.patch(
            name="a", namespace=ns, body=steps, content_type="application/json-patch+json"
        )
        assert by_json.data.z == "3"
        replaced = maps.replace(body=config_map("a", only="this"), namespace=ns)
        assert replaced.to_dict()["data"] == {"only": "this"}
        stale = {**config_map("a"), "metadata": made.metadata.to_dict()}
        with pytest.raises(ConflictError):
            maps.replace(body=stale, namespace=ns)
        with pytest.raises(UnprocessibleEntityError):
            maps.create(body=config_map("Upper"), namespace=ns)
        assert maps.delete(name="a", namespace=ns).status == "Success"
        with pytest.raises(NotFoundError):
            maps.get(name="a", namespace=ns)

    await run(tour)


async def test_lists_come_in_pages_and_go_by_selector(dyn: dynamic.DynamicClient) -> None:
    def tour() -> None:
        ns = place(dyn)
        maps = dyn.resources.get(api_version="v1", kind="ConfigMap")
        for name in "abcde":
            maps.create(body=config_map(name), namespace=ns)
        found, token = [], ""
        while True:
            page = maps.get(
                namespace=ns, label_selector="all=yes", limit=2, _continue=token or None
            )
            found.append([item.metadata.name for item in page.items])
            token = page.metadata["continue"]
            if not token:
                break
        assert found == [["a", "b"], ["c", "d"], ["e"]]
        maps.delete(namespace=ns, label_selector="all=yes", field_selector="metadata.name!=a")
        left = maps.get(namespace=ns, label_selector="all=yes")
        assert [item.metadata.name for item in left.items] == ["a"]

    await run(tour)


async def test_a_watch_begins_with_what_is_there_and_ends_at_its_timeout(
    dyn: dynamic.DynamicClient,
) -> None:
    def tour() -> list[tuple[str, str]]:
        ns = place(dyn)
        maps = dyn.resources.get(api_version="v1", kind="ConfigMap")
        maps.create(body=config_map("a"), namespace=ns)
        maps.create(body=config_map("b"), namespace=ns)
        seen = []
        for event in maps.watch(namespace=ns, label_selector="all=yes", timeout=1):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 2:
                maps.delete(name="a", namespace=ns)
        return seen

    assert await run(tour) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_with_initial_events_ends_them_with_a_bookmark(
    dyn: dynamic.DynamicClient,
) -> None:
    def tour() -> list[str]:
        ns = place(dyn)
        maps = dyn.resources.get(api_version="v1", kind="ConfigMap")
        maps.create(body=config_map("a"), namespace=ns)
        events = maps.watch(
            namespace=ns,
            label_selector="all=yes",
            timeout=5,
            allow_watch_bookmarks=True,
            send_initial_events=True,
            resource_version_match="NotOlderThan",
        )
        seen = []
        for event in events:
            seen.append(event["type"])
            if event["type"] == "BOOKMARK":
                notes = event["raw_object"]["metadata"]["annotations"]
                assert notes == {"k8s.io/initial-events-end": "true"}
                break
        return seen

    assert await run(tour) == ["ADDED", "BOOKMARK"]


async def test_status_and_scale_are_written_through_their_subresources(
    dyn: dynamic.DynamicClient,
) -> None:
    def tour() -> None:
        group = f"{fresh('w')}.example.com"
        definitions = dyn.resources.get(**CRD)
        definitions.create(body=widget_definition(group))
        for event in definitions.watch(name=f"widgets.{group}", timeout=10):
            conditions = event["raw_object"].get("status", {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                break
        widgets = dyn.resources.get(api_version=f"{group}/v1", kind="Widget")
        body = {
            "apiVersion": f"{group}/v1",
            "kind": "Widget",
            "metadata": {"name": "w"},
            "spec": {"color": "red"},
        }
        assert widgets.create(body=body, namespace="default").spec.replicas == 1
        written = widgets.status.patch(
            name="w", namespace="default", body={"status": {"replicas": 1}}, content_type=MERGE
        )
        assert written.status.replicas == 1
        scaled = widgets.scale.patch(
            name="w", namespace="default", body={"spec": {"replicas": 3}}, content_type=MERGE
        )
        assert (scaled.kind, scaled.spec.replicas) == ("Scale", 3)
        assert widgets.get(name="w", namespace="default").spec.replicas == 3
        definitions.delete(name=f"widgets.{group}")

    await run(tour)


@pytest.mark.parametrize("discoverer", [LazyDiscoverer, EagerDiscoverer])
async def test_kinds_are_found_by_what_is_known_of_them(
    api: client.ApiClient, tmp_path: Path, discoverer: type[LazyDiscoverer]
) -> None:
    def tour() -> None:
        found = dynamic.DynamicClient(api, str(tmp_path / "cache"), discoverer)
        assert found.resources.get(kind="ManifestWork").group == "work.open-cluster-management.io"
        assert found.resources.get(short_names=["csr"]).name == "certificatesigningrequests"
        addons = found.resources.get(
            group="addon.open-cluster-management.io", kind="ManagedClusterAddOn", preferred=True
        )
        assert addons.api_version == "v1beta1"
        assert len(found.resources.search(kind="Event")) == 2
        with pytest.raises(ResourceNotUniqueError):
            found.resources.get(kind="Event")
        with pytest.raises(ResourceNotFoundError):
            found.resources.get(kind="Deployment")
        assert found.version["kubernetes"]["major"] == "1"

    await run(tour)


async def test_what_was_discovered_is_kept_in_a_file_until_a_new_kind_is_asked_for(
    api: client.ApiClient, tmp_path: Path
) -> None:
    def tour() -> None:
        cache = tmp_path / "cache"
        first = dynamic.DynamicClient(api, str(cache))
        secrets = first.resources.get(api_version="v1", kind="Secret")
        written = cache.stat().st_mtime_ns
        second = dynamic.DynamicClient(api, str(cache))
        again = second.resources.get(api_version="v1", kind="Secret")
        assert (again.group_version, again.verbs) == (secrets.group_version, secrets.verbs)
        assert cache.stat().st_mtime_ns == written
        group = f"{fresh('w')}.example.com"
        definitions = second.resources.get(**CRD)
        definitions.create(body=widget_definition(group))
        for event in definitions.watch(name=f"widgets.{group}", timeout=10):
            if event["raw_object"].get("status", {}).get("acceptedNames", {}).get("kind"):
                break
        # it is not in the cache: the client asks the hub again
        assert second.resources.get(api_version=f"{group}/v1", kind="Widget").namespaced
        definitions.delete(name=f"widgets.{group}")

    await run(tour)


async def test_metadata_alone_is_served_when_asked_for(dyn: dynamic.DynamicClient) -> None:
    def tour() -> None:
        namespaces = dyn.resources.get(api_version="v1", kind="Namespace")
        partial = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
        one = namespaces.get(name="default", header_params={"Accept": partial.format("")})
        assert (one.kind, one.spec) == ("PartialObjectMetadata", None)
        many = namespaces.get(header_params={"Accept": partial.format("List")})
        assert many.kind == "PartialObjectMetadataList"

    await run(tour)
