"""The Python client's informer and watch: caches follow, resume, and recover from 410."""

import queue
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Self

import pytest
import pytest_asyncio
from kubernetes import client, config, informer, watch
from kubernetes.client.exceptions import ApiException

from hub import server
from hub.clock import Clock
from hub.registry.catalog import Catalog
from hub.registry.engine import Engine
from hub.store import Store
from tests.clients.pythons import ROOT_CA, config_map, fresh, make_namespace, plain, run
from tests.hubs import InProcess, running_hub

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def stores() -> list[Store]:
    """The store of the module's hub, once it runs."""
    return []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(
    tmp_path_factory: pytest.TempPathFactory, stores: list[Store]
) -> AsyncIterator[InProcess]:
    """A hub whose log the tests may cut."""

    class Seen(Engine):
        def __init__(
            self, store: Store, catalog: Catalog, clock: Clock, *, sealed: Iterable[str] = ()
        ) -> None:
            super().__init__(store, catalog, clock, sealed=sealed)
            stores.append(store)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Engine", Seen)
        async with running_hub(tmp_path_factory.mktemp("hub") / "data") as found:
            yield found


class Followed:
    """An informer on a namespace's ConfigMaps, and what its handlers were called with."""

    def __init__(self, core: client.CoreV1Api, namespace: str, *, resync_s: int = 0) -> None:
        self.informer = informer.SharedInformer(
            core.list_namespaced_config_map,
            namespace=namespace,
            label_selector="follow=yes",
            resync_period=resync_s,
        )
        self._events: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        for type_ in (informer.ADDED, informer.MODIFIED, informer.DELETED):
            self.informer.add_event_handler(type_, self._handler(type_))

    def _handler(self, type_: str) -> object:
        return lambda obj: self._events.put((type_, obj.metadata.name))

    def next(self) -> tuple[str, str]:
        return self._events.get(timeout=10)

    def __enter__(self) -> Self:
        self.informer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.informer.stop()


async def test_an_informer_tells_of_every_change_and_keeps_a_cache(api: client.ApiClient) -> None:
    def tour() -> None:
        ns = fresh()
        core = make_namespace(api, ns)
        core.create_namespaced_config_map(ns, config_map("a", follow="yes"))
        with Followed(core, ns) as followed:
            assert followed.next() == ("ADDED", "a")
            core.create_namespaced_config_map(ns, config_map("b", follow="yes"))
            assert followed.next() == ("ADDED", "b")
            core.patch_namespaced_config_map("a", ns, {"data": {"x": "2"}})
            assert followed.next() == ("MODIFIED", "a")
            cached = followed.informer.cache.get_by_key(f"{ns}/a")
            assert cached.data == {"x": "2"}
            core.patch_namespaced_config_map("b", ns, {"metadata": {"labels": {"follow": "no"}}})
            assert followed.next() == ("DELETED", "b")  # it left the selector
            core.delete_namespaced_config_map("a", ns)
            assert followed.next() == ("DELETED", "a")
            assert followed.informer.cache.list() == []

    await run(tour)


@pytest.fixture
def namespace() -> str:
    return fresh()


async def test_an_informer_lists_again_when_its_revision_is_gone(
    api: client.ApiClient, namespace: str, stores: list[Store]
) -> None:
    core = await run(lambda: make_namespace(api, namespace))
    # short watches, as the client cannot stop one that it is about to open
    followed = Followed(core, namespace, resync_s=1)
    old = await run(lambda: plain(api, core.list_namespace())["metadata"]["resourceVersion"])
    await run(lambda: core.create_namespaced_config_map(namespace, config_map("a", follow="yes")))
    await stores[0].compact_log(stores[0].revision)
    followed.informer._resource_version = old  # as after a long sleep

    def tour() -> list[tuple[str, str]]:
        with followed:
            return [followed.next(), followed.next()]

    assert await run(tour) == [("ADDED", "a"), ("MODIFIED", "a")]  # the latter by the resync


async def test_a_watch_from_before_the_log_fails_with_410(
    api: client.ApiClient, namespace: str, stores: list[Store]
) -> None:
    core = await run(lambda: make_namespace(api, namespace))
    old = await run(lambda: plain(api, core.list_namespace())["metadata"]["resourceVersion"])
    await run(lambda: core.create_namespaced_config_map(namespace, config_map("a")))
    await stores[0].compact_log(stores[0].revision)

    def tour() -> None:
        events = watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=old, timeout_seconds=5
        )
        with pytest.raises(ApiException) as gone:
            next(events)
        assert gone.value.status == 410
        assert str(gone.value.reason).startswith(f"Expired: too old resource version: {old}")

    await run(tour)


async def test_a_watch_goes_on_over_several_connections(
    api: client.ApiClient, namespace: str
) -> None:
    def tour() -> list[str]:
        core = make_namespace(api, namespace)
        seen: list[str] = []
        stream = watch.Watch()
        for name in ("a", "b", "c"):
            core.create_namespaced_config_map(namespace, config_map(name))
            kwargs = {"resource_version": stream.resource_version} if seen else {}
            for event in stream.stream(
                core.list_namespaced_config_map,
                namespace,
                field_selector=f"metadata.name!={ROOT_CA}",
                timeout_seconds=10,
                **kwargs,
            ):
                seen.append(event["object"].metadata.name)
                stream.stop()
        return seen

    assert await run(tour) == ["a", "b", "c"]


async def test_a_watch_gives_objects_as_they_came_when_asked(
    api: client.ApiClient, namespace: str
) -> None:
    def tour() -> None:
        core = make_namespace(api, namespace)
        stream = watch.Watch()
        for event in stream.stream(
            core.list_namespaced_config_map, namespace, timeout_seconds=10, deserialize=False
        ):
            assert event["object"]["metadata"]["name"] == ROOT_CA
            assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("ConfigMap", "v1")
            stream.stop()

    await run(tour)


async def test_a_watch_outlives_nothing_but_the_hub(tmp_path: Path) -> None:
    async with running_hub(tmp_path / "data") as other:
        api = config.new_client_from_config(str(other.kubeconfig))
        core = client.CoreV1Api(api)
        events = watch.Watch().stream(core.list_namespace, timeout_seconds=60)
        assert (await run(lambda: next(events)))["type"] == "ADDED"
        ended = run(lambda: list(events))
    try:
        rest = await ended  # the hub ends its watches cleanly when it stops
    finally:
        api.close()
    assert {event["type"] for event in rest} == {"ADDED"}
