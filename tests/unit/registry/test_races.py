"""Writes to one object that race each other all win, one after another."""

import asyncio
from pathlib import Path

import pytest

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.registry.engine import Engine
from tests.unit.registry.given import VirtualClock, an_engine, kind_named

CONFIG_MAP = kind_named("ConfigMap")
LEASE = kind_named("Lease")
WRITERS = 64


async def made(engine: Engine) -> Obj:
    return await engine.create(CONFIG_MAP, {"metadata": {"name": "one"}}, namespace="ns")


async def test_writers_that_name_no_revision_never_hear_of_a_conflict(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=["ns"]) as engine:
        await made(engine)

        def add(n: int) -> asyncio.Future[Obj]:
            def change(obj: Obj) -> None:
                obj.setdefault("data", {})[f"k{n}"] = "v"

            return asyncio.ensure_future(engine.modify(CONFIG_MAP, "one", change, namespace="ns"))

        await asyncio.gather(*map(add, range(WRITERS)))
        found = engine.peek(CONFIG_MAP, "one", "ns")
        assert found is not None
        assert len(found["data"]) == WRITERS
        bodies = [{"metadata": {"name": "one"}, "data": {"n": str(n)}} for n in range(WRITERS)]
        written = await asyncio.gather(
            *(engine.update(CONFIG_MAP, body, namespace="ns") for body in bodies)
        )
        assert len({obj["metadata"]["resourceVersion"] for obj in written}) == WRITERS
        assert not engine._races._locks  # nothing is kept of a race that is over


async def test_of_writers_that_name_a_revision_one_wins(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=["ns"]) as engine:
        revision = (await made(engine))["metadata"]["resourceVersion"]
        meta = {"name": "one", "resourceVersion": revision}
        outcomes = await asyncio.gather(
            *(
                engine.update(
                    CONFIG_MAP, {"metadata": dict(meta), "data": {"n": str(n)}}, namespace="ns"
                )
                for n in range(WRITERS)
            ),
            return_exceptions=True,
        )
        refused = [o for o in outcomes if isinstance(o, ApiError)]
        assert len(refused) == WRITERS - 1
        assert {error.code for error in refused} == {409}


async def test_of_many_deletions_one_deletes_and_the_rest_find_nothing(tmp_path: Path) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=["ns"]) as engine:
        await made(engine)
        outcomes = await asyncio.gather(
            *(engine.delete(CONFIG_MAP, "one", namespace="ns") for _ in range(WRITERS)),
            return_exceptions=True,
        )
        codes = [o.code for o in outcomes if isinstance(o, ApiError)]
        assert codes == [404] * (WRITERS - 1)


@pytest.mark.parametrize("holder", ["one", "another"])
async def test_renewals_beside_durable_writes_all_arrive(tmp_path: Path, holder: str) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=["ns"]) as engine:
        spec = {"holderIdentity": "one", "renewTime": "2026-01-01T00:00:00.000000Z"}
        await engine.create(LEASE, {"metadata": {"name": "l"}, "spec": dict(spec)}, namespace="ns")

        def renew(n: int) -> asyncio.Future[Obj]:
            def change(obj: Obj) -> None:
                obj["spec"]["renewTime"] = f"2026-01-01T00:00:00.{n + 1:06}Z"
                if n % 2:
                    obj["spec"]["holderIdentity"] = f"{holder}{n}"

            return asyncio.ensure_future(engine.modify(LEASE, "l", change, namespace="ns"))

        written = await asyncio.gather(*map(renew, range(40)))
        assert len({obj["metadata"]["resourceVersion"] for obj in written}) == 40
