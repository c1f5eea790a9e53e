"""The protobuf decoder and encoder at their edges, and under random bytes."""

import copy
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.errors import ApiError
from hub.meta.protobuf import MAGIC, decode_envelope, encode_envelope, is_supported
from hub.meta.protobuf.decoder import MAX_VALUES
from hub.meta.protobuf.schema import parse_tables
from hub.meta.protobuf.tables import KINDS, MESSAGES
from hub.meta.protobuf.wire import (
    WireError,
    bytes_field,
    fields,
    read_varint,
    signed,
    varint,
    varint_field,
)


def body(api_version: str, kind: str, raw: bytes, *more: bytes) -> bytes:
    types = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return MAGIC + bytes_field(1, types) + bytes_field(2, raw) + b"".join(more)


def config_map(raw: bytes) -> Obj:
    return decode_envelope(body("v1", "ConfigMap", raw))


FULL: list[Obj] = [
    {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": "n",
            "generation": 3,
            "creationTimestamp": "2026-11-30T18:00:00Z",
            "deletionTimestamp": "2026-11-30T18:00:01Z",
            "deletionGracePeriodSeconds": 0,
            "labels": {"a": "", "b": "é"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": False}
            ],
            "finalizers": ["x/y"],
            "managedFields": [
                {
                    "manager": "m",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-11-30T18:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}},
                    "subresource": "status",
                }
            ],
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {
            "phase": "Active",
            "conditions": [{"type": "T", "status": "True", "message": "m"}],
        },
    },
    {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "c"},
        "immutable": False,
        "data": {"": "", "k": "v"},
        "binaryData": {"b": "AAH/"},
    },
    {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {},
        "immutable": True,
        "data": {"e": "", "k": "bm8="},
        "stringData": {"s": "t"},
        "type": "Opaque",
    },
    {
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {},
        "secrets": [{"name": "s"}],
        "imagePullSecrets": [{"name": "p"}],
        "automountServiceAccountToken": False,
    },
    {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "ConfigMap", "fieldPath": "spec"},
        "source": {"component": "c", "host": "h"},
        "firstTimestamp": "1969-12-31T23:59:59Z",
        "count": 7,
        "eventTime": "2026-11-30T18:00:00.000001Z",
        "series": {"count": 2, "lastObservedTime": "1969-12-31T23:59:59.500000Z"},
        "related": {},
        "reportingComponent": "r",
        "reportingInstance": "",
    },
    {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "e"},
        "series": {"count": 0},
        "regarding": {},
        "deprecatedSource": {},
        "deprecatedLastTimestamp": "2026-11-30T18:00:00Z",
        "deprecatedCount": 4,
    },
    {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {},
        "spec": {
            "holderIdentity": "",
            "leaseDurationSeconds": 0,
            "acquireTime": "2026-11-30T18:00:00.100000Z",
            "leaseTransitions": -1,
            "strategy": "OldestEmulationVersion",
            "preferredHolder": "p",
        },
    },
    {
        "kind": "CertificateSigningRequest",
        "apiVersion": "certificates.k8s.io/v1",
        "metadata": {},
        "spec": {
            "request": "AA==",
            "signerName": "",
            "expirationSeconds": 600,
            "extra": {"k": ["a", ""], "none": []},
        },
        "status": {
            "conditions": [{"type": "Approved", "status": "True"}],
            "certificate": "AQ==",
        },
    },
    {
        "kind": "ClusterRole",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {},
        "rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}, {}],
        "aggregationRule": {
            "clusterRoleSelectors": [
                {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
                }
            ]
        },
    },
    {
        "kind": "ClusterRoleBinding",
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {},
        "subjects": [{"kind": "Group", "apiGroup": "g", "name": "n"}],
        "roleRef": {"apiGroup": "g", "kind": "ClusterRole", "name": "r"},
    },
    {
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": {"token": "t", "audiences": ["a"]},
        "status": {
            "authenticated": True,
            "user": {"username": "u", "groups": ["g"], "extra": {"k": ["v"]}},
        },
    },
    {
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {
            "resourceAttributes": {
                "verb": "list",
                "fieldSelector": {"rawSelector": "a=b"},
                "labelSelector": {"requirements": [{"key": "k", "operator": "Exists"}]},
            },
            "nonResourceAttributes": {"path": "/"},
            "user": "u",
            "extra": {"k": ["v"]},
        },
        "status": {"allowed": False, "denied": True, "reason": "r"},
    },
    {
        "kind": "DeleteOptions",
        "apiVersion": "coordination.k8s.io/v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "5"},
        "orphanDependents": False,
        "propagationPolicy": "Background",
        "dryRun": ["All"],
    },
    {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": "c", "remainingItemCount": 0},
        "status": "Failure",
        "details": {"causes": [{"reason": "r", "field": "f"}], "retryAfterSeconds": 1},
        "code": 409,
    },
]


@pytest.mark.parametrize("obj", FULL, ids=lambda o: f"{o['kind']}-{o['apiVersion'][0]}")
def test_an_object_survives_the_wire(obj: Obj) -> None:
    decoded = decode_envelope(encode_envelope(copy.deepcopy(obj)))
    assert decoded == obj | {k: v for k, v in decoded.items() if k not in obj and v == {}}


def test_every_kind_can_be_sent_empty() -> None:
    for api_version, kind in KINDS:
        obj = decode_envelope(encode_envelope({"apiVersion": api_version, "kind": kind}))
        assert list(obj)[:2] == ["kind", "apiVersion"]
        assert (obj["kind"], obj["apiVersion"]) == (kind, api_version)


def test_delete_options_belong_to_every_group_and_other_kinds_to_one() -> None:
    assert is_supported("example.com/v3", "DeleteOptions")
    assert is_supported("coordination.k8s.io/v1", "Lease")
    assert not is_supported("coordination.k8s.io/v1beta1", "Lease")
    with pytest.raises(ApiError, match='no kind "Pod" is registered for version "v1"'):
        decode_envelope(body("v1", "Pod", b""))
    with pytest.raises(ValueError, match="kind 'Pod' of 'v1' has no protobuf table"):
        encode_envelope({"apiVersion": "v1", "kind": "Pod"})


def test_unknown_fields_are_skipped_whatever_their_type() -> None:
    unknown = varint_field(90, 2**63) + bytes_field(91, b"x") + varint(92 << 3 | 1) + b"12345678"
    unknown += varint(93 << 3 | 5) + b"1234"
    assert config_map(unknown + bytes_field(1, unknown + bytes_field(1, b"c"))) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "c"},
    }


def test_a_message_in_pieces_is_one_message() -> None:
    first = bytes_field(1, bytes_field(1, b"c") + bytes_field(14, b"f"))
    second = bytes_field(1, bytes_field(3, b"n") + bytes_field(14, b"g"))
    metadata = config_map(first + second)["metadata"]
    assert metadata == {"name": "c", "namespace": "n", "finalizers": ["f", "g"]}


def test_the_last_of_a_repeated_scalar_and_of_a_map_key_wins() -> None:
    entry = bytes_field(1, b"k") + bytes_field(2, b"1")
    raw = varint_field(4, 1) + varint_field(4, 0) + bytes_field(2, entry)
    raw += bytes_field(2, bytes_field(2, b"2") + bytes_field(1, b"k")) + bytes_field(2, b"")
    obj = config_map(raw)
    assert obj["immutable"] is False
    assert obj["data"] == {"k": "2", "": ""}


def test_a_number_is_cut_to_its_type_as_go_does() -> None:
    spec = varint_field(2, 2**32 + 5) + varint_field(5, 2**32 - 1)
    lease = decode_envelope(body("coordination.k8s.io/v1", "Lease", bytes_field(2, spec)))
    assert lease["spec"] == {"leaseDurationSeconds": 5, "leaseTransitions": -1}


def test_a_table_with_repeated_numbers_reads_them_packed_and_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = parse_tables("Numbers: items=1:[int32]")["Numbers"]
    monkeypatch.setitem(KINDS, ("test/v1", "Numbers"), table)
    packed = bytes_field(1, varint(1) + varint(300) + varint(-1))
    obj = decode_envelope(body("test/v1", "Numbers", varint_field(1, 7) + packed))
    assert obj["items"] == [7, 1, 300, -1]
    assert decode_envelope(encode_envelope(obj)) == obj


def test_json_inside_the_envelope_is_read_as_json() -> None:
    data = body("v1", "Pod", b'{"spec":{"a":1}}', bytes_field(4, b"application/json"))
    assert decode_envelope(data) == {"kind": "Pod", "apiVersion": "v1", "spec": {"a": 1}}


RAW_NAME = bytes_field(1, bytes_field(1, b"\xff"))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "expected prefix [107 56 115 0]"),
        (b"{}", "expected prefix [107 56 115 0]"),
        (MAGIC + b"\x0a", "unexpected end of data at byte 5"),
        (MAGIC + b"\x0a\x05", "unexpected end of data at byte 6"),
        (MAGIC + b"\x00\x00", "illegal field number 0 at byte 4"),
        (MAGIC + b"\x0b", "unsupported wire type 3 at byte 4"),
        (MAGIC + b"\x08" + b"\xff" * 11, "number too long at byte 5"),
        (MAGIC + b"\x08\x01", "wrong wire type 0 at byte 5"),
        (MAGIC + bytes_field(1, b"\x0a\x01\xff"), "text is not UTF-8 at byte 8"),
        (body("v1", "Pod", b"", bytes_field(3, b"gzip")), "unsupported contentEncoding"),
        (body("v1", "Pod", b"", bytes_field(4, b"text/plain")), "unsupported contentType"),
        (body("v1", "Pod", b"[]", bytes_field(4, b"application/json")), "must be an object"),
        (body("v1", "ConfigMap", RAW_NAME), "text is not UTF-8 at byte 27 in metadata.name"),
        (body("v1", "ConfigMap", varint_field(1, 1)), "wrong wire type 0 at byte 24 in metadata"),
        (body("v1", "ConfigMap", bytes_field(4, b"")), "wrong wire type 2 at byte 25 in immutable"),
        (body("v1", "ConfigMap", bytes_field(2, varint_field(1, 1))), "wrong wire type 0"),
    ],
)
def test_malformed_bytes_are_a_400_that_says_where(data: bytes, problem: str) -> None:
    with pytest.raises(ApiError, match=re.escape(problem)) as caught:
        decode_envelope(data)
    assert caught.value.code == 400


def test_a_time_beyond_the_calendar_and_broken_managed_fields_are_refused() -> None:
    late = bytes_field(1, bytes_field(8, varint_field(1, 2**62)))
    with pytest.raises(ApiError, match=r"out of range at byte \d+ in metadata.creationTimestamp"):
        config_map(late)
    managed = bytes_field(1, bytes_field(17, bytes_field(7, bytes_field(1, b"{"))))
    with pytest.raises(ApiError, match=r"in metadata.managedFields.fieldsV1"):
        config_map(managed)


def test_a_body_of_very_many_values_is_refused() -> None:
    with pytest.raises(ApiError, match=f"more than {MAX_VALUES} values"):
        config_map(bytes_field(1, bytes_field(14, b"")) * (MAX_VALUES // 2 + 1))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"holder": "x"}, "spec.holder is not a field of LeaseSpec"),
        ({"holderIdentity": 1}, "spec.holderIdentity must be a str, not int"),
        ({"leaseDurationSeconds": "1"}, "spec.leaseDurationSeconds must be a int, not str"),
        ({"leaseDurationSeconds": 2**31}, "spec.leaseDurationSeconds must be an int32"),
        ({"leaseDurationSeconds": True}, "spec.leaseDurationSeconds must be an int32"),
        ({"renewTime": "now"}, "spec.renewTime: time 'now' is not RFC 3339"),
    ],
)
def test_an_object_that_does_not_fit_its_table_is_refused_by_field(spec: Obj, problem: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
    with pytest.raises(ValueError, match=re.escape(problem)):
        encode_envelope(lease)


def test_bytes_must_be_base64_to_be_sent() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"k": "?"}}
    with pytest.raises(ValueError, match=re.escape("data[k] must be base64")):
        encode_envelope(secret)


def test_a_table_with_a_mistake_is_refused() -> None:
    for text, problem in (
        ("A: x", "A has the field 'x', write it name=number:type"),
        ("A: x=1 y=1", "names a field or a number twice"),
        ("A: x=1:B", "A.x has the unknown type B"),
    ):
        with pytest.raises(ValueError, match=re.escape(problem)):
            parse_tables(text)


def test_no_table_but_that_of_schemas_nests_in_itself() -> None:
    def height(name: str, above: tuple[str, ...]) -> int:
        if name == "JSONSchemaProps":  # how deep these may nest is the decoder's to limit
            return 1
        assert name not in above
        below = [f.type for f in MESSAGES[name].fields if f.type in MESSAGES]
        return 1 + max((height(b, (*above, name)) for b in below), default=0)

    assert max(height(name, ()) for name in MESSAGES) <= 8


@given(st.integers(0, 2**64 - 1))
def test_a_varint_reads_back_as_written(value: int) -> None:
    encoded = varint(value)
    assert read_varint(encoded, 0, len(encoded)) == (value, len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_negative_number_takes_ten_bytes_and_comes_back(value: int) -> None:
    encoded = varint(value)
    assert (len(encoded) == 10) is (value < 0)
    assert signed(read_varint(encoded, 0, len(encoded))[0], 32) == value


SEEDS = [encode_envelope(o) for o in FULL]


@given(st.binary(max_size=80), st.sampled_from(sorted(KINDS)))
@settings(max_examples=300)
def test_random_bytes_are_an_object_or_a_400(raw: bytes, kind: tuple[str, str]) -> None:
    for data in (raw, MAGIC + raw, body(*kind, raw)):
        with suppress(ApiError):
            # the encoder fills in the messages that Go always writes; after that nothing changes
            again = decode_envelope(encode_envelope(decode_envelope(data)))
            assert decode_envelope(encode_envelope(again)) == again


@given(st.data())
@settings(max_examples=300)
def test_damaged_bodies_are_an_object_or_a_400(data: st.DataObject) -> None:
    seed = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(seed) - 1))
        seed[at] = data.draw(st.integers(0, 255))
    with suppress(ApiError):
        decode_envelope(bytes(seed[: data.draw(st.integers(0, len(seed)))]))
        decode_envelope(bytes(seed))


@given(st.binary(max_size=60))
def test_fields_never_reach_past_the_end(data: bytes) -> None:
    with suppress(WireError):
        for field in fields(data, 0, len(data)):
            assert 0 < field.start <= field.end <= len(data)
