"""Events that the hub writes about what it did or would not do."""

from pathlib import Path

import pytest

from hub.registry.builtin import NAMESPACE
from hub.registry.event import EVENT
from hub.registry.report import MESSAGE_BYTES, reference_to, warn
from tests.unit.registry.given import VirtualClock, an_engine


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("x" * MESSAGE_BYTES, "x" * MESSAGE_BYTES),
        ("x" * 10_000, "x" * (MESSAGE_BYTES - 3) + "..."),
        ("ü" * 600, "ü" * 510 + "..."),
    ],
)
async def test_a_message_beyond_a_kibibyte_is_cut(tmp_path: Path, message: str, kept: str) -> None:
    """That is what the API server takes in a note; a thousand names never fit."""
    async with an_engine(tmp_path, VirtualClock(), namespaces=("default", "c")) as engine:
        about = reference_to(NAMESPACE, engine.get(NAMESPACE, "c"))
        await warn(engine, about, reason="R", message=message, component="hublet")
        (event,) = engine.each(EVENT)
        assert event["message"] == kept
        assert len(kept.encode()) <= MESSAGE_BYTES


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("x" * 236, "x" * 236 + "."),
        ("x" * 237, "x" * 236 + "."),
        ("x" * 253, "x" * 236 + "."),
        (f"{'x' * 234}.-y{'z' * 10}", "x" * 234 + "."),
        ("system:node", "00000000-0000-4000-8000-"),
    ],
)
async def test_an_object_of_any_name_has_events(tmp_path: Path, name: str, begins: str) -> None:
    async with an_engine(tmp_path, VirtualClock(), namespaces=("default",)) as engine:
        about = {"kind": "Any", "name": name, "uid": "u"}
        await warn(engine, about, reason="R", message="m", component="hublet")
        (event,) = engine.each(EVENT)
        assert event["metadata"]["name"].startswith(begins)
        assert event["involvedObject"]["name"] == name
