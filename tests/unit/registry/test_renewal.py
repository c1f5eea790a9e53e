"""Renewals that the store refuses: the client is told when to come back."""

from pathlib import Path

import pytest

from hub.auth.bootstrap_policy import CLUSTER_NAME_LABEL
from hub.meta.errors import ApiError
from hub.registry.builtin import LEASE
from hub.store import Closed, MapFull, Store, StoreError
from tests.unit.registry.given import VirtualClock, an_engine


@pytest.mark.parametrize(("error", "code"), [(MapFull("full"), 507), (Closed("closed"), 503)])
async def test_a_refused_renewal_is_an_error_of_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: StoreError, code: int
) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("c",)) as engine:
        meta = {"name": "l", "labels": {CLUSTER_NAME_LABEL: "c"}}
        await engine.create(LEASE, {"metadata": meta, "spec": {}}, namespace="c")

        def refuse(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(Store, "renew", refuse)
        with pytest.raises(ApiError) as refused:
            await engine.modify(
                LEASE,
                "l",
                lambda obj: obj["spec"].update(renewTime="2026-01-01T00:00:00.000000Z"),
                namespace="c",
            )
        assert refused.value.code == code
