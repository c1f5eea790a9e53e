"""``Hublet-Durable``: what is answered is in the bucket, and what is said when it is not."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hub.backup.pace import PacePolicy
from hub.config import ConfigError
from snapshot.errors import Fenced
from snapshot.layout import HEAD
from snapshot.remote.file import FileRemote
from tests.hubs import MERGE, Answer, Api, InProcess, running_hub
from tests.server.support import CLUSTERS, config_maps, named
from tests.server.test_backup import Bucket, hub_on, key_of, metric, restore, shipped

MAPS = config_maps("default")
SECRETS = "/api/v1/namespaces/default/secrets"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NEVER = PacePolicy(debounce_s=600.0, max_wait_s=600.0, heartbeat_s=600.0)
"""Nothing is shipped that is not hurried."""
QUICK = PacePolicy(first_retry_s=0.05, last_retry_s=0.1)
MARK = "hublet-durable"
DURABLE = (MARK, "true")


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket((tmp_path / "bucket").as_uri(), tmp_path / "bucket")


@contextlib.asynccontextmanager
async def a_hub(
    tmp_path: Path, bucket: Bucket, *, pace: PacePolicy = NEVER, durable: tuple[str, ...] = ()
) -> AsyncIterator[InProcess]:
    """A hub that has shipped its start."""
    async with running_hub(
        tmp_path / "data",
        object_store=bucket.url,
        key_file=key_of(tmp_path),
        pace=pace,
        durable=durable,
    ) as hub:
        first = hub.admin.with_headers(DURABLE)
        assert (await first.call("POST", MAPS, named("first"))).headers[MARK] == "true"
        yield hub


@contextlib.asynccontextmanager
async def in_bucket(tmp_path: Path, bucket: Bucket, name: str) -> AsyncIterator[Api]:
    """What the bucket holds at this moment, served apart from it."""
    restore(tmp_path, bucket, name)
    async with running_hub(tmp_path / name, key_file=key_of(tmp_path), detach=True) as hub:
        yield hub.admin


class Gate:
    """Holds back the commits of HEAD from when it is shut until it is opened."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()
        self._open.set()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def pass_through(self) -> None:
        if not self._open.is_set():
            self.reached.set()
        assert self._open.wait(20)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """In front of HEAD of every bucket."""
    found, put = Gate(), FileRemote.put_if_match

    def slow(self: FileRemote, name: str, source: bytes, *, etag: str) -> str:
        if name == HEAD:
            found.pass_through()
        return put(self, name, source, etag=etag)

    monkeypatch.setattr(FileRemote, "put_if_match", slow)
    yield found
    found.open()


async def test_an_acknowledged_write_is_in_the_bucket_at_that_moment(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with a_hub(tmp_path, bucket) as hub:
        durably = hub.admin.with_headers(DURABLE)
        for name in ("kept", "changed", "patched", "gone", "one", "two"):
            labels = {"of": "many"} if name in ("one", "two") else {}
            await durably.create(MAPS, {"metadata": {"name": name, "labels": labels}})
        old = await durably.get(f"{MAPS}/changed")
        answers = [
            await durably.call("PUT", f"{MAPS}/changed", {**old, "data": {"x": "2"}}),
            await durably.call(
                "PATCH", f"{MAPS}/patched", {"data": {"x": "3"}}, content_type=MERGE
            ),
            await durably.call("DELETE", f"{MAPS}/gone"),
            await durably.call("DELETE", f"{MAPS}?labelSelector=of%3Dmany"),
            await durably.call("POST", CLUSTERS, named("t-c")),
            await durably.call(
                "PATCH",
                f"{CLUSTERS}/t-c/status",
                {"status": {"version": {"kubernetes": "v1.35.0"}}},
                content_type=MERGE,
            ),
        ]
        assert [(each.status // 100, each.headers.get(MARK)) for each in answers] == [
            (2, "true")
        ] * len(answers)
        revision = answers[-1].obj()["metadata"]["resourceVersion"]
        assert bucket.head().rev >= int(revision)
        async with in_bucket(tmp_path, bucket, "then") as then:
            items = (await then.get(MAPS))["items"]
            found = {item["metadata"]["name"]: item.get("data") for item in items}
            found.pop("kube-root-ca.crt")
            assert found == {
                "first": None,
                "kept": None,
                "changed": {"x": "2"},
                "patched": {"x": "3"},
            }
            cluster = await then.get(f"{CLUSTERS}/t-c")
            assert cluster["status"]["version"] == {"kubernetes": "v1.35.0"}


async def test_the_end_of_an_object_with_its_last_finalizer_is_waited_for(
    tmp_path: Path, bucket: Bucket
) -> None:
    """The answer shows the revision before; what is waited for is the deletion's."""
    async with a_hub(tmp_path, bucket) as hub:
        durably, path = hub.admin.with_headers(DURABLE), f"{MAPS}/held"
        await durably.create(MAPS, {"metadata": {"name": "held", "finalizers": ["example.com/a"]}})
        waits = await durably.call("DELETE", path)
        assert waits.headers[MARK] == "true"
        before = bucket.head().rev
        answer = await durably.call(
            "PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE
        )
        assert (answer.status, answer.headers[MARK]) == (200, "true")
        assert bucket.head().rev > before
        async with in_bucket(tmp_path, bucket, "then") as then:
            assert (await then.call("GET", path)).status == 404


async def test_writes_of_a_configured_kind_wait_unasked_and_others_do_not(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with a_hub(tmp_path, bucket, durable=("secrets", "widgets.example.com", "events")) as hub:
        assert [each for each in hub.warnings if each.startswith("durable")] == [
            "durable: no kind of this hub is called widgets.example.com; so once one is defined",
            "durable: events are never shipped: their writes wait for nothing",
        ]
        other = await hub.admin.call("POST", MAPS, named("other"))
        assert (other.status, MARK in other.headers) == (201, False)
        revision = int(other.obj()["metadata"]["resourceVersion"])
        assert bucket.head().rev < revision
        secret = await hub.admin.call("POST", SECRETS, named("s"))
        assert secret.headers[MARK] == "true"
        assert bucket.head().rev > revision
        refused = hub.admin.with_headers((MARK, "false"))  # the operator's word counts
        assert (await refused.call("DELETE", f"{SECRETS}/s")).headers[MARK] == "true"


async def test_what_does_not_ship_is_answered_at_once(tmp_path: Path, bucket: Bucket) -> None:
    """With a bucket that is away: none of these waits."""
    async with a_hub(tmp_path, bucket) as hub:
        durably = hub.admin.with_headers(DURABLE)
        labels = {"open-cluster-management.io/cluster-name": "c"}
        lease = await durably.create(
            LEASES,
            {
                "metadata": {"name": "l", "labels": labels},
                "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"},
            },
        )
        settled = await durably.create(MAPS, named("settled"))
        bucket.take_away()
        lease["spec"]["renewTime"] = "2026-01-01T00:01:00.000000Z"
        renewed = await durably.call("PUT", f"{LEASES}/l", lease)
        again = await durably.call("PUT", f"{LEASES}/l", renewed.obj())
        event = {**named("e"), "involvedObject": {"namespace": "default"}, "reason": "x"}
        told = await durably.call("POST", EVENTS, event)
        rehearsed = await durably.call("POST", f"{MAPS}?dryRun=All", named("never"))
        nothing = await durably.call("DELETE", f"{MAPS}?labelSelector=none")
        for answer in (renewed, again, told, rehearsed, nothing):
            assert (answer.status // 100, MARK in answer.headers) == (2, False), answer.body
        same = await durably.call("PUT", f"{MAPS}/settled", settled)
        assert (same.status, same.headers[MARK]) == (200, "true")  # it is in the bucket
        bucket.give_back()


async def test_an_unchanged_object_that_is_not_in_the_bucket_is_waited_for(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with a_hub(tmp_path, bucket) as hub:
        made = await hub.admin.create(MAPS, named("a"))
        assert bucket.head().rev < int(made["metadata"]["resourceVersion"])
        same = await hub.admin.with_headers(DURABLE).call("PUT", f"{MAPS}/a", made)
        assert same.obj() == made
        assert bucket.head().rev >= int(made["metadata"]["resourceVersion"])


async def test_a_slow_bucket_is_waited_for_and_delays_nobody_else(
    tmp_path: Path, bucket: Bucket, gate: Gate
) -> None:
    async with a_hub(tmp_path, bucket) as hub:
        gate.shut()
        durably = hub.admin.with_headers(DURABLE)
        waiting = [
            asyncio.ensure_future(durably.call("POST", MAPS, named(f"w{number}")))
            for number in range(8)
        ]
        await asyncio.to_thread(gate.reached.wait, 20)
        assert (await hub.admin.call("POST", MAPS, named("other"))).status == 201
        assert await metric(hub.admin, "hublet_request_count") == 0
        assert not any(each.done() for each in waiting)
        segments = await metric(hub.admin, "hublet_backup_segments_total")
        gate.open()
        answers: list[Answer] = await asyncio.gather(*waiting)
        assert {(each.status, each.headers[MARK]) for each in answers} == {(201, "true")}
        newest = max(int(each.obj()["metadata"]["resourceVersion"]) for each in answers)
        assert bucket.head().rev >= newest
        now = await metric(hub.admin, "hublet_backup_segments_total")
        assert now - segments <= 2  # they share them


async def test_a_bucket_that_is_away_gets_504_and_has_the_write_once_it_is_back(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with a_hub(tmp_path, bucket, pace=QUICK) as hub:
        durably = hub.admin.with_headers(DURABLE)
        bucket.take_away()
        answer = await durably.call("POST", f"{MAPS}?timeout=300ms", named("late"))
        status, made = answer.obj(), await hub.admin.get(f"{MAPS}/late")
        revision = made["metadata"]["resourceVersion"]
        assert (answer.status, status["reason"]) == (504, "Timeout")
        assert f"has been made on this hub at resourceVersion {revision}" in status["message"]
        assert not {MARK, "retry-after"} & set(answer.headers)
        bucket.give_back()
        again = await durably.call("PUT", f"{MAPS}/late", made)
        assert (again.status, again.headers[MARK]) == (200, "true")
        async with in_bucket(tmp_path, bucket, "then") as then:
            found = await then.get(f"{MAPS}/late")
            assert found["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_hub_that_is_fenced_while_a_write_waits_answers_503(
    tmp_path: Path, bucket: Bucket
) -> None:
    async with a_hub(tmp_path, bucket) as hub:
        restore(tmp_path, bucket, "new")
        async with hub_on(tmp_path, bucket, "new") as new:
            await shipped(new.admin)
            answer = await hub.admin.with_headers(DURABLE).call("POST", MAPS, named("lost"))
            assert answer.status == 503, answer.body
            assert "must not write any more" in answer.obj()["message"]
            assert isinstance(await hub.end(), Fenced)


async def test_a_hub_that_ships_nowhere_refuses_before_it_writes(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as hub:
        durably = hub.admin.with_headers(DURABLE)
        refused = await durably.call("POST", MAPS, named("a"))
        assert (refused.status, refused.obj()["reason"]) == (412, "PreconditionFailed")
        assert (await durably.call("GET", f"{MAPS}/a")).status == 404
        wrong = await hub.admin.with_headers((MARK, "yes")).call("POST", MAPS, named("a"))
        assert wrong.status == 400
        assert "the header Hublet-Durable must be true or false" in wrong.obj()["message"]
        assert (await hub.admin.call("GET", f"{MAPS}/a")).status == 404
    with pytest.raises(ConfigError, match="durable: nothing ships without an object store"):
        async with running_hub(tmp_path / "data", durable=("secrets",)):
            pass
