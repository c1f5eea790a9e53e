"""The Python client's utilities, its ways of calling, leader election and configuration."""

import json
import sys
from collections.abc import Callable
from multiprocessing.pool import ApplyResult
from pathlib import Path
from typing import cast

import pytest
import yaml
from kubernetes import client, config, utils
from kubernetes.client.exceptions import ApiException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from urllib3 import HTTPResponse

from hub.meta import Obj
from tests.clients.pythons import config_map, fresh, kubeconfig, make_namespace, plain, run
from tests.hubs import InProcess
from tests.server.support import cluster_access

pytestmark = pytest.mark.asyncio(loop_scope="module")
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]


# ------------------------------------------------------------------ create_from_*


def documents(ns: str) -> list[Obj]:
    def obj(api_version: str, kind: str, name: str, **rest: object) -> Obj:
        meta = {"name": name, "namespace": ns}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}

    rbac = "rbac.authorization.k8s.io"
    ref = {"apiGroup": rbac, "kind": "Role", "name": "r"}
    return [
        obj("v1", "ConfigMap", "c", data={"x": "1"}),
        obj("v1", "Secret", "s", stringData={"x": "1"}),
        obj("v1", "ServiceAccount", "a"),
        obj(f"{rbac}/v1", "Role", "r", rules=RULES),
        obj(f"{rbac}/v1", "RoleBinding", "b", roleRef=ref, subjects=[]),
        obj("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "me"}),
    ]


async def test_manifests_are_created_from_files_folders_and_lists(
    api: client.ApiClient, tmp_path: Path
) -> None:
    def tour() -> None:
        one, two, three = (fresh() for _ in range(3))
        for ns in (one, two, three):
            make_namespace(api, ns)
        file = tmp_path / "all.yaml"
        file.write_text(yaml.safe_dump_all(documents(one)))
        made = utils.create_from_yaml(api, str(file))
        assert [found[0].kind for found in made] == [d["kind"] for d in documents(one)]
        listed = {"apiVersion": "v1", "kind": "List", "items": documents(two)}
        assert len(utils.create_from_dict(api, listed)) == len(documents(two))
        folder = tmp_path / "folder"
        folder.mkdir()
        for number, document in enumerate(documents(three)):
            (folder / f"{number}.yaml").write_text(yaml.safe_dump(document))
        assert len(utils.create_from_directory(api, str(folder))) == len(documents(three))

    await run(tour)


async def test_what_could_not_be_created_is_told_one_by_one(api: client.ApiClient) -> None:
    def tour() -> None:
        ns = fresh()
        make_namespace(api, ns)
        listed = {"apiVersion": "v1", "kind": "List", "items": documents(ns)}
        utils.create_from_dict(api, listed)
        with pytest.raises(utils.FailToCreateError) as failed:
            utils.create_from_dict(api, listed)
        reasons = [json.loads(e.body)["reason"] for e in failed.value.api_exceptions]
        assert reasons == ["AlreadyExists"] * len(documents(ns))
        absent = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
        with pytest.raises(utils.FailToCreateError, match="could not find the requested resource"):
            utils.create_from_dict(api, absent, namespace=ns)

    await run(tour)


async def test_a_conflict_is_tried_again(api: client.ApiClient) -> None:
    def tour() -> None:
        ns = fresh()
        core = make_namespace(api, ns)
        core.create_namespaced_config_map(ns, config_map("a"))
        tries: list[str] = []

        def change() -> client.V1ConfigMap:
            found = core.read_namespaced_config_map("a", ns)
            if not tries:  # somebody else is faster once
                core.patch_namespaced_config_map("a", ns, {"data": {"other": "1"}})
            tries.append(plain(api, found)["metadata"]["resourceVersion"])
            found.data = {**(found.data or {}), "mine": "1"}
            return core.replace_namespaced_config_map("a", ns, found)

        changed = utils.retry_on_conflict(change, sleep_func=lambda _: None)
        assert len(tries) == 2
        assert changed.data == {"x": "1", "other": "1", "mine": "1"}

    await run(tour)


# ------------------------------------------------------------------ ways of calling


async def test_lists_are_continued(api: client.ApiClient) -> None:
    def tour() -> None:
        ns = fresh()
        core = make_namespace(api, ns)
        for name in "abcde":
            core.create_namespaced_config_map(ns, config_map(name, page="yes"))
        pages: list[list[str]] = []
        token: str | None = None
        while token != "":
            found = core.list_namespaced_config_map(
                ns, label_selector="page=yes", limit=2, _continue=token
            )
            page = plain(api, found)
            pages.append([item["metadata"]["name"] for item in page["items"]])
            token = page["metadata"].get("continue", "")
        assert pages == [["a", "b"], ["c", "d"], ["e"]]
        with pytest.raises(ApiException) as refused:
            core.list_namespaced_config_map(ns, limit=2, _continue="nonsense")
        assert refused.value.status == 400

    await run(tour)


async def test_answers_come_raw_with_headers_or_later(api: client.ApiClient) -> None:
    def tour() -> None:
        core = client.CoreV1Api(api)
        raw = cast("HTTPResponse", core.list_namespace(_preload_content=False))
        assert raw.status == 200
        assert json.loads(raw.data)["kind"] == "NamespaceList"
        _, status, headers = core.read_namespace_with_http_info("default")
        assert (status, bool(headers["Audit-Id"])) == (200, True)
        later = cast("ApplyResult[object]", core.read_namespace("default", async_req=True))
        assert plain(api, later.get(timeout=10))["metadata"]["name"] == "default"
        dry = core.create_namespace(
            client.V1Namespace(metadata=client.V1ObjectMeta(name="dry")), dry_run="All"
        )
        assert plain(api, dry)["metadata"]["uid"]
        with pytest.raises(ApiException) as gone:
            core.read_namespace("dry")
        told = json.loads(gone.value.body or "")
        assert (told["kind"], told["reason"]) == ("Status", "NotFound")

    await run(tour)


@pytest.mark.parametrize("fault", ["Strict", "Warn", "Ignore"])
async def test_unknown_fields_are_told_as_asked(api: client.ApiClient, fault: str) -> None:
    def tour() -> None:
        custom = client.CustomObjectsApi(api)
        body = {
            "apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": fresh()},
            "spec": {"nonsense": 1},
        }
        where = ("cluster.open-cluster-management.io", "v1", "managedclusters", body)
        if fault == "Strict":
            with pytest.raises(ApiException, match="unknown field"):
                custom.create_cluster_custom_object(*where, field_validation=fault)
            return
        made, _, headers = custom.create_cluster_custom_object_with_http_info(
            *where, field_validation=fault
        )
        assert ("Warning" in headers) is (fault == "Warn")
        assert "nonsense" not in plain(api, made)["spec"]

    await run(tour)


# ------------------------------------------------------------------ leader election


@pytest.mark.parametrize("lock", [ConfigMapLock, LeaseLock])
async def test_one_candidate_leads_until_its_lease_runs_out(
    api: client.ApiClient, lock: type[LeaseLock]
) -> None:
    def tour() -> None:
        make_namespace(api, ns := fresh())

        def candidate(name: str) -> leaderelection.LeaderElection:
            made = lock("leader", ns, name)
            for part in ("api_instance", "api"):  # it takes the default client otherwise
                if hasattr(made, part):
                    setattr(made, part, type(getattr(made, part))(api))
            return leaderelection.LeaderElection(
                electionconfig.Config(made, 17, 15, 5, lambda: None, None)
            )

        ann, bob = candidate("ann"), candidate("bob")
        assert ann.try_acquire_or_renew()
        assert not bob.try_acquire_or_renew()
        assert ann.try_acquire_or_renew()
        assert vars(bob.observed_record)["holder_identity"] == "ann"
        assert not bob.try_acquire_or_renew()
        bob.observed_time_milliseconds = 0  # long ago
        assert bob.try_acquire_or_renew()
        assert not ann.try_acquire_or_renew()
        _, record = ann.election_config.lock.get("leader", ns)
        assert record.holder_identity == "bob"

    await run(tour)


# ------------------------------------------------------------------ configuration


def who(api: client.ApiClient) -> str:
    review = client.AuthenticationV1Api(api).create_self_subject_review(
        client.V1SelfSubjectReview()
    )
    name = plain(api, review)["status"]["userInfo"]["username"]
    assert isinstance(name, str)
    return name


def token_of(api: client.ApiClient) -> tuple[str, str]:
    """A fresh account's name and token."""
    make_namespace(api, ns := fresh())
    core = client.CoreV1Api(api)
    robot = client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot"))
    core.create_namespaced_service_account(ns, robot)
    asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
    made = core.create_namespaced_service_account_token("robot", ns, asked)
    return f"system:serviceaccount:{ns}:robot", plain(api, made)["status"]["token"]


async def test_a_kubeconfig_is_loaded_from_file_dict_and_default(
    hub: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tour() -> None:
        path = str(hub.kubeconfig)
        loaded = client.Configuration()
        config.load_kube_config(path, client_configuration=loaded)
        calls: list[Callable[[], client.ApiClient]] = [
            lambda: client.ApiClient(loaded),
            lambda: config.new_client_from_config(path),
            lambda: config.new_client_from_config_dict(kubeconfig(hub.kubeconfig)),
        ]
        for call in calls:
            with call() as api:
                assert who(api)
        contexts, active = config.list_kube_config_contexts(path)
        assert active in contexts

    await run(tour)


async def test_a_user_may_be_a_token_or_a_program_that_gives_one(
    hub: InProcess, api: client.ApiClient, tmp_path: Path
) -> None:
    def tour() -> None:
        name, token = token_of(api)
        given = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": token},
        }
        program = tmp_path / "credential.json"
        program.write_text(json.dumps(given))
        run_it = {
            "apiVersion": given["apiVersion"],
            "command": sys.executable,
            "args": ["-c", f"print(open({str(program)!r}).read())"],
            "interactiveMode": "Never",
        }
        for user in ({"token": token}, {"exec": run_it}):
            found = kubeconfig(hub.kubeconfig)
            found["users"][0]["user"] = user
            with config.new_client_from_config_dict(found) as robot:
                assert who(robot) == name

    await run(tour)


async def test_a_pod_of_another_cluster_may_be_configured_as_if_inside(
    hub: InProcess, api: client.ApiClient, tmp_path: Path
) -> None:
    def tour() -> None:
        name, token = token_of(api)
        server, ca = cluster_access(hub)
        host, _, port = server.removeprefix("https://").rpartition(":")
        (tmp_path / "token").write_text(token)
        (tmp_path / "ca.crt").write_bytes(ca)
        loaded = client.Configuration()
        InClusterConfigLoader(
            token_filename=str(tmp_path / "token"),
            cert_filename=str(tmp_path / "ca.crt"),
            environ={"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port},
        ).load_and_set(loaded)
        with client.ApiClient(loaded) as robot:
            assert who(robot) == name

    await run(tour)
