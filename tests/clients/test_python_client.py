"""The Python ``kubernetes`` client, unmodified: typed, custom objects, watch, dynamic."""

import uuid
from pathlib import Path

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.client.exceptions import ApiException

from hub.meta import Obj
from tests.clients.pythons import ROOT_CA, config_map, fresh, make_namespace, plain, run

pytestmark = pytest.mark.asyncio(loop_scope="module")
GROUP, VERSION = "cluster.open-cluster-management.io", "v1"


@pytest.fixture
def ns() -> str:
    return fresh()


async def test_typed_objects_are_created_listed_patched_and_deleted(
    api: client.ApiClient, ns: str
) -> None:
    def tour() -> None:
        core = make_namespace(api, ns)
        made = core.create_namespaced_config_map(ns, config_map("a"))
        assert made.metadata is not None
        assert made.metadata.creation_timestamp is not None
        assert made.metadata.creation_timestamp.tzinfo is not None
        listed = plain(api, core.list_namespaced_config_map(ns))
        names = [item["metadata"]["name"] for item in listed["items"]]
        assert names == ["a", ROOT_CA]
        patched = core.patch_namespaced_config_map(
            "a", ns, {"data": {"x": None, "y": "2"}}, _content_type="application/merge-patch+json"
        )
        assert patched.data == {"y": "2"}
        patched.data = {"y": "2", "z": "3"}
        replaced = core.replace_namespaced_config_map("a", ns, patched)
        assert replaced.data == {"y": "2", "z": "3"}
        with pytest.raises(ApiException) as stale:
            core.replace_namespaced_config_map("a", ns, patched)
        assert (stale.value.status, stale.value.reason) == (409, "Conflict")
        deleted = plain(api, core.delete_namespaced_config_map("a", ns))
        assert deleted["status"] == "Success"
        with pytest.raises(ApiException) as gone:
            core.read_namespaced_config_map("a", ns)
        assert gone.value.status == 404

    await run(tour)


async def test_a_watch_resumes_from_the_revision_of_a_list(api: client.ApiClient, ns: str) -> None:
    def tour() -> list[tuple[str, str]]:
        core = make_namespace(api, ns)
        listed = plain(api, core.list_namespaced_config_map(ns))
        before = listed["metadata"]["resourceVersion"]
        for name in ("a", "b"):
            core.create_namespaced_config_map(ns, config_map(name))
        core.delete_namespaced_config_map("a", ns)
        seen: list[tuple[str, str]] = []
        stream = watch.Watch()
        for event in stream.stream(
            core.list_namespaced_config_map, ns, resource_version=before, timeout_seconds=10
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 2:
                stream.stop()
        last = stream.resource_version
        again = watch.Watch()
        for event in again.stream(
            core.list_namespaced_config_map, ns, resource_version=last, timeout_seconds=10
        ):
            seen.append((event["type"], event["object"].metadata.name))
            again.stop()
        return seen

    assert await run(tour) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_ends_at_its_timeout(api: client.ApiClient, ns: str) -> None:
    def tour() -> list[Obj]:
        core = make_namespace(api, ns)
        selector = "metadata.name=absent"
        found = watch.Watch().stream(
            core.list_namespaced_config_map, ns, field_selector=selector, timeout_seconds=1
        )
        return list(found)

    assert await run(tour) == []


async def test_managed_clusters_are_custom_objects(api: client.ApiClient) -> None:
    name = f"py-{uuid.uuid4().hex[:8]}"

    def tour() -> None:
        custom = client.CustomObjectsApi(api)
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {"who": name}},
            "spec": {"leaseDurationSeconds": 30},
        }
        made = plain(
            api, custom.create_cluster_custom_object(GROUP, VERSION, "managedclusters", body)
        )
        assert made["metadata"]["generation"] == 1
        selected = custom.list_cluster_custom_object(
            GROUP, VERSION, "managedclusters", label_selector=f"who={name}"
        )
        listed = plain(api, selected)
        assert [item["metadata"]["name"] for item in listed["items"]] == [name]
        custom.patch_cluster_custom_object_status(
            GROUP, VERSION, "managedclusters", name, {"status": {"version": {"kubernetes": "v1"}}}
        )
        found = plain(
            api, custom.get_cluster_custom_object(GROUP, VERSION, "managedclusters", name)
        )
        assert found["status"]["version"] == {"kubernetes": "v1"}
        custom.delete_cluster_custom_object(GROUP, VERSION, "managedclusters", name)

    await run(tour)


async def test_the_dynamic_client_discovers_every_kind(
    api: client.ApiClient, ns: str, tmp_path: Path
) -> None:
    def tour() -> None:
        found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery"))
        namespaces = found.resources.get(api_version="v1", kind="Namespace")
        namespaces.create(body={"metadata": {"name": ns}})
        works = found.resources.get(
            api_version="work.open-cluster-management.io/v1", kind="ManifestWork"
        )
        assert works.namespaced
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        body = {
            "apiVersion": works.group_version,
            "kind": "ManifestWork",
            "metadata": {"name": "w"},
            "spec": {"workload": {"manifests": [manifest]}},
        }
        assert works.create(body=body, namespace=ns).metadata.name == "w"
        assert [w.metadata.name for w in works.get(namespace=ns).items] == ["w"]
        by_short_name = found.resources.get(short_names=["mcl", "mcls"])
        assert by_short_name.kind == "ManagedCluster"
        assert "status" in by_short_name.subresources

    await run(tour)


async def test_identity_is_reviewed_by_typed_apis(api: client.ApiClient) -> None:
    def tour() -> None:
        review = client.AuthenticationV1Api(api).create_self_subject_review(
            client.V1SelfSubjectReview()
        )
        assert "system:masters" in plain(api, review)["status"]["userInfo"]["groups"]
        asked = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(verb="get", resource="secrets")
            )
        )
        answer = client.AuthorizationV1Api(api).create_self_subject_access_review(asked)
        assert plain(api, answer)["status"]["allowed"] is True
        assert client.VersionApi(api).get_code().major == "1"

    await run(tour)
