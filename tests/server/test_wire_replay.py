"""Recorded agents of Open Cluster Management, replayed against a hub of ours."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hub.meta import Obj
from hub.meta.codec.json import decode
from hub.meta.protobuf import MAGIC, decode_envelope, encode_envelope
from tests.server.replay import Outcome, Replay
from tests.server.wire_differences import DIFFERENCES, Difference, render
from tests.server.wire_recording import Exchange, RecordedEvent, read_recording

RECORDINGS = ("v1.3", "v0.16")
ROOT = Path(__file__).resolve().parents[2]
BODIES = ROOT / "tests" / "golden" / "protobuf"
KINDS = {
    "CertificateSigningRequest",
    "ConfigMap",
    "Event",
    "Lease",
    "Namespace",
    "Secret",
    "SelfSubjectAccessReview",
    "SelfSubjectReview",
    "ServiceAccount",
    "TokenRequest",
}


def recorded() -> list[Exchange]:
    return [exchange for name in RECORDINGS for exchange in read_recording(name)]


async def play(
    exchanges: Sequence[Exchange], tmp_path: Path, differences: Sequence[Difference] = DIFFERENCES
) -> Outcome:
    return await Replay(exchanges, differences, tmp_path / "data").run()


async def test_recorded_agents_get_the_answers_they_were_recorded_with(tmp_path: Path) -> None:
    exchanges = recorded()
    outcome = await play(exchanges, tmp_path)
    assert not outcome.unexplained, "\n".join(outcome.unexplained)
    counts = outcome.counts
    assert (counts["requests compared"], counts["watches compared"]) == (99, 27)
    assert counts["asked, not compared"] == sum(x.status in (403, 429) for x in exchanges) == 10
    assert len(exchanges) == 99 + 27 + 10
    seen = [event for x in exchanges for event in x.events if not event.is_periodic_bookmark]
    folded, missing = counts["events folded"], counts["events without a counterpart"]
    assert counts["events compared"] + folded + missing == len(seen) == 91
    assert folded <= 7, "only ManagedClusters before acceptance and after joining"
    assert missing == 6


@pytest.mark.parametrize(
    ("recording", "requests", "watches", "missing"),
    [
        ("v1.3-detach", 75, 10, 3),
        ("v1.3-expired", 34, 26, 3),
        ("v1.3-rotation", 33, 12, 0),
    ],
)
async def test_a_recorded_agent_lives_through_what_happens_to_it(
    recording: str, requests: int, watches: int, missing: int, tmp_path: Path
) -> None:
    exchanges = read_recording(recording)
    outcome = await play(exchanges, tmp_path)
    assert not outcome.unexplained, "\n".join(outcome.unexplained)
    counts = outcome.counts
    assert (counts["requests compared"], counts["watches compared"]) == (requests, watches)
    assert requests + watches == len(exchanges)
    seen = [event for x in exchanges for event in x.events if not event.is_periodic_bookmark]
    folded = counts["events folded"]
    assert counts["events without a counterpart"] == missing
    assert counts["events compared"] + folded + missing == len(seen)
    assert folded <= 12, "only ManagedClusters before acceptance and after joining"


async def test_every_listed_difference_occurs(tmp_path: Path) -> None:
    used = (await play(recorded(), tmp_path)).used
    for name in ("v1.3-detach", "v1.3-expired", "v1.3-rotation"):
        used += (await play(read_recording(name), tmp_path / name)).used
    assert [difference for difference in DIFFERENCES if not used[difference]] == []


async def test_without_the_list_the_differences_are_found(tmp_path: Path) -> None:
    kept = [d for d in DIFFERENCES if "timeAdded" not in d.path and "403" not in d.path]
    outcome = await play(recorded(), tmp_path, kept)
    text = "\n".join(outcome.unexplained)
    assert "v1.3/80 WATCH certificatesigningrequests: (status) 403 -> 200" in text
    assert "timeAdded adds" in text


async def test_a_refusal_that_is_recorded_otherwise_is_found(tmp_path: Path) -> None:
    """The 403s of a detached agent are compared like the rest."""
    changed = {
        49: lambda x: replace(x, answer=_at(x.answer, "details", kind="works")),
        52: lambda x: replace(x, answer={**x.answer, "message": "forbidden"}),
    }
    exchanges = [changed.get(x.seq, lambda x: x)(x) for x in read_recording("v1.3-detach")]
    outcome = await play(exchanges, tmp_path)
    assert {line.split(":")[0] for line in outcome.unexplained} == {
        "v1.3-detach/49 GET manifestworks",
        "v1.3-detach/52 WATCH managedclusters",
    }


async def test_a_recording_with_other_answers_does_not_pass(tmp_path: Path) -> None:
    changed = {
        ("v1.3", 25): lambda x: replace(x, answer=_at(x.answer, "metadata", generation=3)),
        ("v1.3", 9): lambda x: replace(x, status=404),
        ("v0.16", 41): lambda x: replace(x, answer=_at(x.answer, "details", kind="works")),
        ("v1.3", 13): lambda x: replace(x, events=_without_finalizers(x)),
        ("v1.3", 7): lambda x: replace(x, events=_without_labels(x)),
    }
    exchanges = [changed.get((x.recording, x.seq), lambda x: x)(x) for x in recorded()]
    outcome = await play(exchanges, tmp_path)
    found = {line.split(":")[0] for line in outcome.unexplained}
    assert found == {
        "v1.3/25 PATCH manifestworks/status",
        "v1.3/9 GET leases",
        "v0.16/41 PATCH manifestworks/status",
        "v1.3/13 MODIFIED manifestworks@527",
        "v1.3/7 MODIFIED managedclusters@607",
    }


def _at(obj: Obj, name: str, **values: object) -> Obj:
    return {**obj, name: {**obj[name], **values}}


def _without_finalizers(exchange: Exchange) -> tuple[RecordedEvent, ...]:
    return _changed(exchange, "527", finalizers=[])


def _without_labels(exchange: Exchange) -> tuple[RecordedEvent, ...]:
    """The feature label of an add-on that has become available."""
    return _changed(exchange, "607", labels={})


def _changed(exchange: Exchange, revision: str, **values: object) -> tuple[RecordedEvent, ...]:
    return tuple(
        replace(event, object=_at(event.object, "metadata", **values))
        if event.revision == revision
        else event
        for event in exchange.events
    )


def test_the_document_lists_the_differences() -> None:
    assert (ROOT / "docs" / "wire-differences.md").read_text() == render()


def test_the_recorded_protobuf_requests_are_read_and_written_byte_for_byte() -> None:
    bodies = [x.body for x in recorded() if x.body.startswith(MAGIC)]
    assert len(bodies) == 14
    assert [encode_envelope(decode_envelope(body)) for body in bodies] == bodies


def test_a_protobuf_body_of_every_kind_decodes_as_go_decodes_it() -> None:
    kinds = set()
    for body in sorted(BODIES.glob("*.bin")):
        ours = decode_envelope(body.read_bytes())
        kinds.add(ours["kind"])
        assert ours == _without_nulls(decode(body.with_suffix(".decoded.json").read_bytes()))
    assert kinds >= KINDS


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value
