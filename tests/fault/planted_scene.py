"""The life of a hub into which strings are planted, and that is made to say all it can."""

import asyncio
import base64
import fcntl
import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from click.testing import CliRunner

from hub.clock import SystemClock
from hub.meta import Obj
from hub.store import HubKey, load_hub_key
from snapshot.chain import Chain
from snapshot.merging import write_merge
from snapshot.remote import open_remote
from tests.fault.planted import (
    StoreFile,
    forms,
    key_forms,
    private_keys,
)
from tests.hubs import MERGE, Answer, Api, HubProcess
from tests.server.support import PARTIAL_LIST, PROTOBUF, TABLE
from tests.server.test_backup import shipped
from tools.restore import cli

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
TOKENS = "/api/v1/namespaces/kube-system/secrets"
WORK = "/apis/work.open-cluster-management.io"
WORKS = f"{WORK}/v1/namespaces/default/manifestworks"
SETS = f"{WORK}/v1alpha1/namespaces/default/manifestworkreplicasets"
TEMPLATES = "/apis/addon.open-cluster-management.io/v1alpha1/addontemplates"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SEALED = ("secrets", "manifestworks", "manifestworkreplicasets", "addontemplates")
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Planted:
    """The strings: letters and digits, so that they stand in JSON and URLs as they are."""

    strings: dict[str, str]
    open: str
    """The one in a ConfigMap."""

    @classmethod
    def draw(cls) -> "Planted":
        names = ("secret", "data", "work", "set", "template", "refused", "crash")
        strings = {name: f"planted{secrets.token_hex(16)}" for name in names}
        strings["token"] = secrets.token_hex(8)
        return cls(strings, open=f"planted{secrets.token_hex(16)}")

    def __getitem__(self, name: str) -> str:
        return self.strings[name]

    def needles(self) -> dict[str, frozenset[bytes]]:
        return {name: forms(text.encode()) for name, text in self.strings.items()}


@dataclass
class Scene:
    """A hub's whole life, and all that it said."""

    place: Path
    planted: Planted
    said: list[tuple[str, bytes]] = field(default_factory=list)
    """Answers to others than who may read what is sealed, and output of commands."""
    spools: int = 0
    """Segments that the crash left in the spool."""

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def bucket(self) -> Path:
        return self.place / "bucket"

    @property
    def key(self) -> HubKey:
        return load_hub_key(self.place / "hub.key")

    def hub(self, name: str, port: int, *flags: str) -> HubProcess:
        """A hub that says as much as one can."""
        (self.place / "tmp").mkdir(exist_ok=True)
        return HubProcess(
            self.place / name,
            port,
            *("--object-store", self.bucket.as_uri(), "--key-file", str(self.place / "hub.key")),
            *("--log-level", "debug", "--audit-log", str(self.place / f"{name}-audit.log")),
            *flags,
            env={"TMPDIR": str(self.place / "tmp")},
        )

    def hear(self, what: str, answer: Answer) -> Answer:
        """Keep an answer that nothing of it may stand in."""
        headers = json.dumps(answer.headers).encode()
        self.said.append((what, headers + answer.body))
        return answer

    def stores(self) -> Iterator[StoreFile]:
        """The files of the stores, of the hub and of the one restored from its bucket."""
        for name in ("data", "new"):
            yield StoreFile(self.place / name / "store", self.key)

    def segments(self) -> list[Path]:
        """Every segment that is whole: of the bucket, and a merge of its deltas."""
        copied = (self.place / "copied").rglob("*.hs")
        return [*self.bucket.rglob("*.hs"), *copied, self.place / "merge" / "merge.hs"]

    def needles(self) -> dict[str, frozenset[bytes]]:
        """What was planted, and the hub's own keys."""
        found = self.planted.needles()
        store = next(self.stores())
        for number, pem in enumerate(private_keys(store.identity())):
            found[f"key {number} of the hub"] = key_forms(pem)
        for number, data_key in store.data_keys.keys.items():
            found[f"data key {number}"] = forms(data_key)
        found["hub key"] = forms(self.key.secret)
        return found


def secret_of(name: str, text: str, **rest: object) -> Obj:
    return {"metadata": {"name": name}, "stringData": {"password": text}, **rest}


def manifest_of(text: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", **secret_of("inner", text)}


async def plant(api: Api, planted: Planted) -> None:
    """Put the strings into every kind that is sealed, and one into a ConfigMap."""
    applied = json.dumps({"stringData": {"password": planted["secret"]}})
    note = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    await api.create(
        SECRETS,
        {**secret_of("s", planted["secret"]), "metadata": {"name": "s", "annotations": note}},
    )
    encoded = base64.b64encode(f"user:{planted['data']}".encode()).decode()
    await api.create(SECRETS, {"metadata": {"name": "d"}, "data": {"p": encoded}})
    await api.patch(f"{SECRETS}/s", {"stringData": {"other": f"x{planted['secret']}"}})
    await api.create(SECRETS, secret_of("gone", planted["secret"]))
    await api.call("DELETE", f"{SECRETS}/gone")
    manifests = [manifest_of(planted["work"])]
    await api.create(
        WORKS, {"metadata": {"name": "w"}, "spec": {"workload": {"manifests": manifests}}}
    )
    manifests = [manifest_of(planted["set"])]
    template = {"workload": {"manifests": manifests}}
    refs = [{"name": "p"}]
    await api.create(
        SETS,
        {
            "metadata": {"name": "r"},
            "spec": {"manifestWorkTemplate": template, "placementRefs": refs},
        },
    )
    manifests = [manifest_of(planted["template"])]
    await api.create(
        TEMPLATES,
        {
            "metadata": {"name": "t"},
            "spec": {"addonName": "a", "agentSpec": {"workload": {"manifests": manifests}}},
        },
    )
    await api.create(
        TOKENS,
        {
            "metadata": {"name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": "abcdef",
                "token-secret": planted["token"],
                "usage-bootstrap-authentication": "true",
                "auth-extra-groups": "system:bootstrappers:managedcluster",
            },
        },
    )
    await api.create(MAPS, {"metadata": {"name": "open"}, "data": {"x": planted.open}})


def refused_writes(text: str) -> Iterator[tuple[str, str, Obj | bytes, str, int]]:
    """Yield writes with a string in them that all end in an error: how, where, what, and which."""
    body = secret_of("s", text)
    plain = json.dumps(body).encode()
    json_ = "application/json"
    yield "POST", SECRETS, body, json_, 409
    yield (
        "PUT",
        f"{SECRETS}/s",
        {**body, "metadata": {"name": "s", "resourceVersion": "1"}},
        json_,
        409,
    )
    yield "PUT", f"{SECRETS}/other", body, json_, 400
    yield "BREW", f"{SECRETS}/s", body, json_, 405
    yield "POST", f"{SECRETS}/s", body, json_, 405
    yield "POST", SECRETS, plain[:-2], json_, 400
    yield "POST", SECRETS, b"k8s\x00" + plain, PROTOBUF, 400
    yield "POST", SECRETS, plain, "text/plain", 415
    yield "POST", SECRETS, {"metadata": {"name": "x"}, "data": {"p": f"!{text}"}}, json_, 400
    yield "POST", SECRETS, {"metadata": {"name": "x"}, "data": [text]}, json_, 400
    yield "POST", "/api/v1/namespaces/nowhere/secrets", body, json_, 404
    patch = [{"op": "test", "path": "/data/password", "value": text}]
    yield "PATCH", f"{SECRETS}/s", json.dumps(patch).encode(), JSON_PATCH, 422
    yield "PATCH", f"{SECRETS}/s", {"data": {"p": f"!{text}"}}, MERGE, 422
    yield "PATCH", f"{SECRETS}/none", {"stringData": {"p": text}}, MERGE, 404
    work = {"metadata": {"name": "x"}, "spec": {"workload": {"manifests": [text]}}}
    yield "POST", WORKS, work, json_, 422
    yield "POST", f"{SECRETS}?fieldValidation=Strict", {**secret_of("x", text), "no": 1}, json_, 400


async def refuse(scene: Scene, api: Api) -> None:
    """Make the hub refuse writes with a string in them, of who may write and of who may not."""
    text = scene.planted["refused"]
    statuses = {}
    for number, (method, path, body, content_type, status) in enumerate(refused_writes(text)):
        answer = await api.call(method, path, body, content_type=content_type)
        scene.hear(f"{number} {method} {path}", answer)
        statuses[number, method, path] = (answer.status, status)
    assert {key: got for key, (got, want) in statuses.items() if got != want} == {}
    nobody = api.acting_as("somebody", "system:authenticated")
    for method, path in (("POST", SECRETS), ("PUT", f"{SECRETS}/s"), ("GET", f"{SECRETS}/s")):
        answer = await nobody.call(method, path, secret_of("s", text))
        assert scene.hear(f"{method} {path} of nobody", answer).status == 403


def bearer(kubeconfig: Path, token: str) -> Api:
    """A client with a token in place of a kubeconfig's certificate."""
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    ca = base64.b64decode(cluster["certificate-authority-data"])
    return Api.connect(cluster["server"], ca=ca, token=token)


async def ask_as(scene: Scene, kubeconfig: Path, token: str) -> int:
    """Come with a token; return how a review ended."""
    api = bearer(kubeconfig, token)
    try:
        answer = scene.hear("a review", await api.call("POST", REVIEWS, {}))
        scene.hear("a list", await api.call("GET", SECRETS))
    finally:
        await api.close()
    return answer.status


async def ask_with_token(scene: Scene, kubeconfig: Path) -> None:
    """Come with the bootstrap token, and with one whose end is wrong."""
    token = f"abcdef.{scene.planted['token']}"
    for given, status in ((token, 201), (f"{token}0", 401), (f"x{token}", 401)):
        assert await ask_as(scene, kubeconfig, given) == status


async def until_full(api: Api) -> None:
    """Wait for the full that a restored hub begins with."""
    async with asyncio.timeout(30):
        while b'segments_total{kind="full"} 1' not in (await api.call("GET", "/metrics")).body:
            pass


async def read_all(scene: Scene, api: Api) -> None:
    """Read what describes a hub: every kind that is not sealed, tables of those that are, pages."""
    groups = [
        version["groupVersion"]
        for group in (await api.get("/apis"))["groups"]
        for version in group["versions"]
    ]
    count = 0
    for root in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for resource in (await api.get(root))["resources"]:
            if "list" not in resource["verbs"]:
                continue
            path = f"{root}/{resource['name']}"
            if resource["name"] not in SEALED:
                scene.hear(path, await api.call("GET", path))
            scene.hear(
                f"{path} as a table",
                await api.call("GET", f"{path}?includeObject=None", accept=TABLE),
            )
            count += 1
    assert count > 20
    for path in (SECRETS, WORKS):
        answer = await api.call(
            "GET", f"{path}?fieldSelector=metadata.name!=s", accept=PARTIAL_LIST
        )
        assert answer.status == 200
        scene.hear(f"{path} as metadata", answer)
    for path in ("/metrics", "/readyz?verbose", "/openapi/v2", "/version", "/hublet/v1/agents/"):
        answer = scene.hear(path, await api.call("GET", path))
        assert answer.status == 200, path


async def crash_within_a_segment(scene: Scene, hub: HubProcess, api: Api) -> None:
    """Kill the hub while a segment lies in its spool: the bucket takes nothing meanwhile."""
    await shipped(api)
    spool = hub.data_dir / "spool"
    with (scene.bucket / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        await api.create(SECRETS, secret_of("c", scene.planted["crash"]))
        async with asyncio.timeout(20):
            while not (held := list(spool.glob("*.hs"))):
                await api.call("GET", "/readyz")
        hub.kill()
    scene.spools = len(held)
    for each in held:
        shutil.copy(each, scene.place / f"left-{each.name}")


def ask_hub_restore(scene: Scene, *, into: Path) -> None:
    """Let hub-restore tell of the prefix, in words and in JSON, and restore it."""
    common = ["--from", scene.bucket.as_uri()]
    keyed = [*common, "--key-file", str(scene.place / "hub.key")]
    other = scene.place / "other.key"
    other.write_text(f"hublet-key-1:{base64.b64encode(bytes(32)).decode()}\n")
    another, data = (scene.place / "copied").as_uri(), str(scene.data)
    calls = [
        ["list", *common],
        ["list", *keyed],
        ["plan", *keyed],
        ["verify", *keyed],
        ["verify", *keyed, "--deep"],
        ["verify", *common, "--key-file", str(other)],
        ["keycheck", *keyed],
        ["keycheck", *common, "--key-file", str(other)],
        ["drill", *keyed],
        ["doctor", *keyed, "--into", data],
        ["diff", *keyed, "--dir", data],
        ["diff", *keyed, "--to", "@1", "--and-to", "latest", "--limit", "0"],
        ["prune", *keyed],
        ["copy", *keyed, "--to-store", another],
        ["restore", *keyed, "--into", str(into)],
    ]
    for call in calls:
        for output in ([], ["-o", "json"]):
            if not output and call[0] == "restore":
                continue  # a second one would keep the first
            done = CliRunner().invoke(cli, [*call, *output])
            assert done.exit_code in {0, 7}, done.output
            scene.said.append((f"hub-restore {call[0]}", done.output.encode()))
    assert (into / "store").is_dir()


def put_a_merge(scene: Scene) -> None:
    """Write the merge of what deltas there are, as tending does every five minutes."""
    remote, place = open_remote(scene.bucket.as_uri()), scene.place / "merge"
    head = Chain(remote, scene.key, clock=SystemClock()).read_head()
    assert head is not None
    place.mkdir()
    token = SystemClock().token
    write_merge(remote, scene.key, head.tail, place, epoch=head.epoch, token=token)


async def live(scene: Scene, port: int) -> None:
    """Play the whole life of a hub."""
    with scene.hub("data", port) as hub:
        api = Api.from_kubeconfig(hub.kubeconfig)
        await plant(api, scene.planted)
        await refuse(scene, api)
        await ask_with_token(scene, hub.kubeconfig)
        await read_all(scene, api)
        await crash_within_a_segment(scene, hub, api)
        await api.close()
    with scene.hub("data", port) as hub:
        api = Api.from_kubeconfig(hub.kubeconfig)
        await shipped(api)
        await api.close()
        assert hub.stop() == 0
    put_a_merge(scene)
    await asyncio.to_thread(ask_hub_restore, scene, into=scene.place / "new")
    with scene.hub("new", port) as hub:
        api = Api.from_kubeconfig(hub.kubeconfig)
        await until_full(api)
        await read_all(scene, api)
        await api.close()
        assert hub.stop() == 0
