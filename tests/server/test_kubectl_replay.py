"""Recorded tours of kubectl, replayed against a hub of ours."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hubs import Api
from tests.server.kubectl_differences import KUBECTL_DIFFERENCES, PREAMBLE
from tests.server.kubectl_recording import KubectlExchange, read_kubectl
from tests.server.kubectl_stage import staged
from tests.server.replay import Outcome
from tests.server.wire_differences import render

CHUNKS = "/api/v1/namespaces/chunks/configmaps"
SEEN = {
    *("configmaps", "customresourcedefinitions", "managedclusters", "namespaces", "widgets"),
}
"""What is watched of the kinds that are served."""
ROOT = Path(__file__).resolve().parents[2]


async def tour(exchanges: Sequence[KubectlExchange], data_dir: Path) -> Outcome:
    async with staged(data_dir) as stage:
        return await stage.replay(KUBECTL_DIFFERENCES).walk(exchanges)


@pytest.mark.parametrize(
    ("recording", "total", "counts"),
    [
        (
            "1.35",
            310,
            {
                "requests compared": 258,
                "watches compared": 11,
                "kinds not served": 29,
                "left out: server-side apply": 12,
            },
        ),
        (
            "1.32",
            319,
            {
                "requests compared": 266,
                "watches compared": 11,
                "kinds not served": 30,
                "left out: server-side apply": 12,
            },
        ),
    ],
)
async def test_a_recorded_kubectl_gets_the_answers_it_was_recorded_with(
    recording: str, total: int, counts: dict[str, int], tmp_path: Path
) -> None:
    exchanges = read_kubectl(recording)
    outcome = await tour(exchanges, tmp_path / "data")
    assert not outcome.unexplained, "\n".join(outcome.unexplained)
    assert len(exchanges) == total == sum(counts.values())
    assert {name: outcome.counts[name] for name in counts} == counts
    events = sum(len(x.events) for x in exchanges if not x.left_out and x.parts[2] in SEEN)
    assert outcome.counts["events compared"] == events > 0
    documents = [x for x in exchanges if x.document and x.status == 200 and not x.left_out]
    assert outcome.counts["outlines compared"] == len(documents) > 20


async def test_every_listed_difference_occurs(tmp_path: Path) -> None:
    used = (await expired(tmp_path / "expired")).used
    for recording in ("1.35", "1.32"):
        used += (await tour(read_kubectl(recording), tmp_path / recording)).used
    assert [difference for difference in KUBECTL_DIFFERENCES if not used[difference]] == []


async def test_recorded_answers_of_another_kind_do_not_pass(tmp_path: Path) -> None:
    """Each of these is changed in one place of the recording, and is found there."""

    def in_metadata(x: KubectlExchange, **values: object) -> KubectlExchange:
        assert isinstance(x.answer, dict)
        return replace(x, answer={**x.answer, "metadata": {**x.answer["metadata"], **values}})

    def with_rows(x: KubectlExchange) -> KubectlExchange:
        assert isinstance(x.answer, dict)
        first, *others = x.answer["rows"]
        changed = {**first, "cells": [*first["cells"][:-2], 7, first["cells"][-1]]}
        return replace(x, answer={**x.answer, "rows": [changed, *others]})

    def with_event(x: KubectlExchange) -> KubectlExchange:
        first, *others = x.events
        return replace(x, events=(replace(first, type="MODIFIED"), *others))

    def with_path(x: KubectlExchange) -> KubectlExchange:
        assert isinstance(x.answer, dict)
        paths = dict(x.answer["paths"])
        del paths["/api/v1/namespaces/{namespace}/secrets"]
        return replace(x, answer={**x.answer, "paths": paths})

    changes: dict[int, Callable[[KubectlExchange], KubectlExchange]] = {
        9: lambda x: replace(x, status=404),
        38: with_path,
        54: lambda x: in_metadata(x, generation=3),
        83: lambda x: in_metadata(x, finalizers=["example.com/hold"]),
        116: with_rows,
        147: with_event,
    }
    exchanges = [changes[x.seq](x) if x.seq in changes else x for x in read_kubectl("1.35")]
    outcome = await tour(exchanges, tmp_path / "data")
    found = {line.split(":")[0] for line in outcome.unexplained}
    assert found == {
        "1.35/9 GET namespaces",
        "1.35/38 GET /openapi/v3/api/v1",
        "1.35/54 PATCH managedclusters",
        "1.35/83 GET configmaps",
        "1.35/116 GET configmaps",
        "1.35/147 MODIFIED managedclusters",
    }


async def test_a_recorded_kubectl_is_told_of_expired_revisions_as_it_was(tmp_path: Path) -> None:
    outcome = await expired(tmp_path / "data")
    assert not outcome.unexplained, "\n".join(outcome.unexplained)
    assert outcome.counts == {"requests compared": 7, "watches compared": 1, "events compared": 1}


async def expired(data_dir: Path) -> Outcome:
    """Replay the recording in which the log is cut after the fourth exchange."""
    exchanges = read_kubectl("1.35-expired")
    async with staged(data_dir) as stage:
        await _make_chunks(stage.hub.admin, exchanges)
        replay = stage.replay(KUBECTL_DIFFERENCES)
        await replay.walk(exchanges[:4])
        replay.revisions["839"] = str(stage.engine.store.revision)
        await stage.hub.admin.patch(f"{CHUNKS}/m1", {"data": {"changed": "yes"}})
        await stage.engine.store.compact_log(stage.engine.store.revision)
        return await replay.walk(exchanges[4:])


async def _make_chunks(admin: Api, exchanges: Sequence[KubectlExchange]) -> None:
    """Make the ConfigMaps that the first three pages show, and nothing beside them."""
    await admin.create("/api/v1/namespaces", {"metadata": {"name": "chunks"}})
    assert (await admin.call("DELETE", f"{CHUNKS}/kube-root-ca.crt")).status == 200
    for exchange in exchanges[:3]:
        assert isinstance(exchange.answer, dict)
        for row in exchange.answer["rows"]:
            meta, count = row["object"]["metadata"], row["cells"][1]
            named = {key: meta[key] for key in ("name", "annotations") if key in meta}
            data = {f"key-{number}": "value" for number in range(count)}
            await admin.create(CHUNKS, {"metadata": named, "data": data})


def test_the_document_lists_the_differences() -> None:
    document = ROOT / "docs" / "wire-differences-kubectl.md"
    assert document.read_text() == render(KUBECTL_DIFFERENCES, PREAMBLE)
