"""Recorded commands of clusteradm, replayed against a hub of ours."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from tests.hubs import running_hub
from tests.server.clusteradm_differences import CLUSTERADM_DIFFERENCES, OUTSIDE, preamble
from tests.server.clusteradm_replay import BOOTSTRAP_USER, ClusteradmReplay
from tests.server.kubectl_recording import CLUSTERADM, KubectlExchange, read_kubectl
from tests.server.kubectl_stage import clients_of
from tests.server.replay import Outcome
from tests.server.wire_compare import Learned
from tests.server.wire_differences import render

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "wire-differences-clusteradm.md"


async def play(exchanges: Sequence[KubectlExchange], data_dir: Path) -> Outcome:
    """Replay them against a hub that accepts clusters, as the recorded one did."""
    learned = Learned(dt.datetime.now(dt.UTC))
    async with running_hub(data_dir, auto_accept=True) as hub:
        clients = clients_of(hub)
        with_token = clients["service-account-token"]
        known = {**clients, BOOTSTRAP_USER: with_token, "bootstrap-token": with_token}
        try:
            replay = ClusteradmReplay(hub, known, CLUSTERADM_DIFFERENCES, learned)
            return await replay.walk(exchanges)
        finally:
            for client in clients.values():
                await client.close()


async def test_a_recorded_clusteradm_gets_the_answers_it_was_recorded_with(tmp_path: Path) -> None:
    exchanges = read_kubectl(CLUSTERADM)
    outcome = await play(exchanges, tmp_path / "data")
    assert not outcome.unexplained, "\n".join(outcome.unexplained)
    counts = {
        "requests compared": 276,
        "watches compared": 4,
        "kinds not served": 10,
    }
    assert len(exchanges) == sum(counts.values()) == 290
    assert {name: outcome.counts[name] for name in counts} == counts
    assert outcome.counts["events compared"] == sum(len(x.events) for x in exchanges) == 12
    assert outcome.counts["written by others"] == 47
    idle = [each for each in CLUSTERADM_DIFFERENCES if not outcome.used[each]]
    assert idle == []


def test_what_needs_something_outside_the_hub_is_listed() -> None:
    found = [
        [where for where in OUTSIDE if fnmatchcase(exchange.label, where)]
        for exchange in read_kubectl(CLUSTERADM)
    ]
    assert sum(bool(each) for each in found) == 10
    assert {where for each in found for where in each} == set(OUTSIDE)


async def test_other_recorded_answers_do_not_pass(tmp_path: Path) -> None:
    """Each of these is changed in one place of the recording, and is found there."""

    def with_answer(x: KubectlExchange, **values: object) -> KubectlExchange:
        assert isinstance(x.answer, dict)
        return replace(x, answer={**x.answer, **values})

    def with_event(x: KubectlExchange) -> KubectlExchange:
        first, *others = x.events
        changed = {**first.object, "metadata": {**first.object["metadata"], "generation": 9}}
        return replace(x, events=(replace(first, object=changed), *others))

    changes: dict[int, Callable[[KubectlExchange], KubectlExchange]] = {
        57: lambda x: with_answer(x, message="not there"),
        69: lambda x: replace(x, status=403),
        121: lambda x: with_answer(x, spec={}),
        131: lambda x: replace(x, status=202),
        214: with_event,
        266: lambda x: with_answer(x, spec={"hubAcceptsClient": False}),
    }
    exchanges = [changes[x.seq](x) if x.seq in changes else x for x in read_kubectl(CLUSTERADM)]
    outcome = await play(exchanges, tmp_path / "data")
    assert {int(line.split("/")[1].split()[0]) for line in outcome.unexplained} == set(changes)


def test_the_document_lists_the_differences() -> None:
    assert DOCUMENT.read_text() == render(CLUSTERADM_DIFFERENCES, preamble())
