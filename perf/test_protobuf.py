"""What decoding the recorded protobuf bodies of real clients costs, a kind each."""

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hub.meta.codec.json import decode
from hub.meta.protobuf import decode_envelope, encode_envelope

_GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "protobuf"
_BODIES = [
    f"{kind}-1"
    for kind in (
        "certificatesigningrequest",
        "clusterrole",
        "clusterrolebinding",
        "configmap",
        "event",
        "lease",
        "namespace",
        "secret",
        "selfsubjectaccessreview",
        "tokenrequest",
    )
]


def _without_null(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_null(v) for k, v in value.items() if v is not None}
    return [_without_null(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", _BODIES)
def test_decoding(benchmark: BenchmarkFixture, name: str) -> None:
    body = (_GOLDEN / f"{name}.bin").read_bytes()
    wanted = decode((_GOLDEN / f"{name}.decoded.json").read_bytes())
    assert benchmark(decode_envelope, body) == _without_null(wanted)


@pytest.mark.parametrize("name", _BODIES[:6])
def test_encoding(benchmark: BenchmarkFixture, name: str) -> None:
    body = (_GOLDEN / f"{name}.bin").read_bytes()
    assert benchmark(encode_envelope, decode_envelope(body)) == body
