"""Recorded bodies of real clients decode as Go decodes them and encode to the same bytes."""

from pathlib import Path

import pytest

from hub.meta import Obj
from hub.meta.codec import json
from hub.meta.protobuf import decode_envelope, encode_envelope, is_supported

GOLDEN = Path(__file__).parents[3] / "golden" / "protobuf"
BODIES = sorted(GOLDEN.glob("*.bin"))


def without_null(value: object) -> object:
    if isinstance(value, dict):
        return {k: without_null(v) for k, v in value.items() if v is not None}
    return [without_null(v) for v in value] if isinstance(value, list) else value


def oracle(body: Path) -> Obj:
    decoded: Obj = json.decode(body.with_suffix(".decoded.json").read_bytes())
    return decoded


def test_there_are_bodies_of_every_kind_the_agents_send() -> None:
    kinds = {oracle(b)["kind"] for b in BODIES}
    assert kinds >= {"CertificateSigningRequest", "Lease", "Event", "TokenRequest", "ConfigMap"}
    assert len(BODIES) == 30


@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.stem)
def test_a_recorded_body_decodes_as_go_decodes_it(body: Path) -> None:
    decoded = decode_envelope(body.read_bytes())
    assert decoded == without_null(oracle(body))
    assert is_supported(decoded["apiVersion"], decoded["kind"])


@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.stem)
def test_a_decoded_body_encodes_to_the_bytes_that_go_wrote(body: Path) -> None:
    assert encode_envelope(decode_envelope(body.read_bytes())) == body.read_bytes()
