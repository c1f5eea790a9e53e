"""A real kube-apiserver as the oracle: the same causes, texts and stored values."""

import pytest

from hub.meta import Obj
from hub.meta.duplicates import unknown_field
from hub.meta.errors import ApiError
from hub.meta.schema.check import check_structural
from hub.meta.schema.default import default
from hub.meta.schema.gotext import marshal
from hub.meta.schema.prune import prune
from hub.meta.schema.structural import Schema, parse
from hub.meta.schema.validate import Validator
from hub.registry.strictness import strict_message
from tests.unit.meta.schema.golden import lines, sorted_causes

_FIELD = "spec.validation.openAPIV3Schema"


@pytest.fixture(scope="module")
def schema() -> Schema:
    return parse(lines("kube-values.jsonl")[0]["schema"])


@pytest.fixture(scope="module")
def validator(schema: Schema) -> Validator:
    return Validator(schema)


def _object(spec: Obj) -> Obj:
    return {"apiVersion": "x.test.dev/v1", "kind": "T", "metadata": {"name": "a"}, "spec": spec}


def _admitted(spec: Obj, schema: Schema) -> Obj:
    pruned, _ = prune(_object(spec), schema)
    return default(pruned, schema)


def test_every_schema_gets_the_causes_of_a_real_server() -> None:
    rows = lines("kube-crds.jsonl")[1:]
    assert len(rows) > 150
    for row in rows:
        assert _verdict(row) == {k: row[k] for k in ("causes", "refused") if k in row}, row


def _verdict(row: Obj) -> Obj:
    try:
        parsed = parse(row["schema"])
    except ApiError as e:
        return {"refused": e.message}
    found = check_structural(parsed, _FIELD, has_status=row["status"])
    return {"causes": sorted_causes(found)}


def test_every_value_gets_the_causes_of_a_real_server(schema: Schema, validator: Validator) -> None:
    rows = lines("kube-values.jsonl")[1:]
    assert len(rows) > 1000
    for row in rows:
        spec = row["spec"] if "spec" in row else {row["field"]: row["value"]}
        causes = validator.validate(_admitted(spec, schema))
        assert sorted_causes(causes) == row.get("causes", []), row


def test_every_valid_value_is_stored_as_a_real_server_stores_it(schema: Schema) -> None:
    rows = [row for row in lines("kube-values.jsonl")[1:] if "stored" in row]
    assert len(rows) > 100
    for row in rows:
        stored: Obj = _admitted({row["field"]: row["value"]}, schema)["spec"]
        found = stored.get(row["field"], "(absent)")
        assert marshal(found) == marshal(row["stored"]), row


def test_unknown_fields_are_told_of_as_a_real_server_tells_of_them(schema: Schema) -> None:
    rows = [row for row in lines("kube-values.jsonl")[1:] if "field" in row]
    assert sum("strict" in row for row in rows) > 10
    for row in rows:
        _, unknown = prune(_object({row["field"]: row["value"]}), schema)
        told = strict_message(map(unknown_field, unknown)) if unknown else None
        assert told == row.get("strict"), row


def test_an_update_is_ratcheted_as_a_real_server_ratchets_it(
    schema: Schema, validator: Validator
) -> None:
    rows = lines("kube-updates.jsonl")[1:]
    ratcheted = 0
    for row in rows:
        old, new = _admitted(row["old"], schema), _admitted(row["new"], schema)
        causes = validator.validate_update(new, old)
        assert sorted_causes(causes) == row["causes"], row
        ratcheted += len(causes) < len(validator.validate(new))
    assert ratcheted > 50
