"""Laws that hold for any JSON: idempotence, purity, and fast and slow validation agreeing."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.meta import Obj
from hub.meta.schema.default import default
from hub.meta.schema.embedded import embedded_causes
from hub.meta.schema.explain import value_causes
from hub.meta.schema.fast import Check, compile_check
from hub.meta.schema.gotext import same
from hub.meta.schema.listtype import list_causes
from hub.meta.schema.prune import prune
from hub.meta.schema.structural import Schema, parse
from hub.meta.schema.validate import UNCHECKED, Validator
from tests.unit.meta.schema.golden import crd_schema, lines

_HEAD, *_ROWS = lines("kube-values.jsonl")
_VALUES = [row["value"] for row in _ROWS if "value" in row]
TORTURE = parse(_HEAD["schema"])
WORK = crd_schema("manifestworks.work.open-cluster-management.io/v1")
_SCHEMAS = {"torture": TORTURE, "work": WORK}
_VALIDATORS = {name: Validator(schema) for name, schema in _SCHEMAS.items()}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
keys = st.sampled_from(
    [*TORTURE.properties["spec"].properties, "a", "b", "k", "metadata", "kind", "apiVersion"]
) | st.text(max_size=4)
json_values = st.recursive(
    scalars | st.sampled_from(_VALUES).map(copy.deepcopy),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)
specs = st.dictionaries(keys, json_values, max_size=8)
torture_objects = st.fixed_dictionaries(
    {"kind": st.just("T"), "spec": specs}, optional={"metadata": json_values, "x": json_values}
)


def _work_of(parts: tuple[list[object], object]) -> Obj:
    return {"spec": {"workload": {"manifests": parts[0]}}, "status": parts[1]}


work_objects = st.tuples(st.lists(json_values, max_size=3), json_values).map(_work_of)
cases = st.one_of(
    st.tuples(torture_objects, st.just("torture")), st.tuples(work_objects, st.just("work"))
)


@given(cases)
def test_pruning_twice_is_pruning_once(case: tuple[Obj, str]) -> None:
    obj, schema = case[0], _SCHEMAS[case[1]]
    before = copy.deepcopy(obj)
    once, _ = prune(obj, schema)
    again, unknown = prune(once, schema)
    assert again is once
    assert unknown == []
    assert same(obj, before)


@given(cases)
def test_defaulting_twice_is_defaulting_once(case: tuple[Obj, str]) -> None:
    obj, schema = case[0], _SCHEMAS[case[1]]
    before = copy.deepcopy(obj)
    once = default(obj, schema)
    assert same(default(once, schema), once)
    assert same(obj, before)


@given(cases)
def test_a_default_is_nothing_that_pruning_drops(case: tuple[Obj, str]) -> None:
    obj, schema = case[0], _SCHEMAS[case[1]]
    pruned, _ = prune(obj, schema)
    found, unknown = prune(default(pruned, schema), schema)
    assert unknown == []
    assert same(default(found, schema), found)


@settings(max_examples=200)
@given(cases)
def test_fast_and_slow_validation_agree_on_anything(case: tuple[Obj, str]) -> None:
    obj, schema = case[0], _SCHEMAS[case[1]]
    is_valid = compile_check(schema)
    slow = value_causes(obj, schema) + embedded_causes(obj, schema) + list_causes(obj, schema)
    assert is_valid(obj) == (slow == [])
    assert _VALIDATORS[case[1]].validate(obj) in (slow, [*slow, UNCHECKED])


@given(cases)
def test_skipping_valid_parts_finds_the_same_faults(case: tuple[Obj, str]) -> None:
    obj, schema = case[0], _SCHEMAS[case[1]]
    checks: dict[int, Check] = {}
    compile_check(schema, checks)
    assert value_causes(obj, schema, checks=checks) == value_causes(obj, schema)


def _keyed(value: Any, schema: Schema | None) -> Any:  # type: ignore[explicit-any]  # any JSON
    """Return a value without the items of list-type maps that have no key."""
    if isinstance(value, dict):
        return {k: _keyed(v, None if schema is None else schema.child(k)) for k, v in value.items()}
    if not isinstance(value, list) or schema is None:
        return value
    items = [_keyed(item, schema.items) for item in value]
    if schema.traits.list_type != "map":
        return items
    return [item for item in items if _has_key(item, schema.traits.list_keys)]


def _has_key(item: object, keys: Sequence[str]) -> bool:
    if not isinstance(item, dict):
        return False
    return all(isinstance(item.get(key), str | int | float) for key in keys)


@given(cases)
def test_an_update_that_changes_nothing_is_blamed_for_nothing(case: tuple[Obj, str]) -> None:
    schema = _SCHEMAS[case[1]]
    pruned = _keyed(prune(case[0], schema)[0], schema)
    causes = value_causes(pruned, schema, old=copy.deepcopy(pruned))
    # only the root itself may be: kube does not compare what its schema does not name
    assert [c for c in causes if "." in c.field] == []


@pytest.mark.parametrize("item", [None, 3, {}, {"k": None}])
def test_an_item_without_a_key_has_no_old_one_that_could_excuse_it(item: object) -> None:
    # kube finds the old item of a list-type map by its key alone
    obj = {"kind": "T", "spec": {"lmap": [item]}}
    assert value_causes(obj, TORTURE, old=copy.deepcopy(obj)) != []


@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": []}, {"status": 3}])
def test_odd_objects_are_judged_and_not_stumbled_over(obj: Obj) -> None:
    for name, schema in _SCHEMAS.items():
        pruned, _ = prune(obj, schema)
        assert isinstance(_VALIDATORS[name].validate(default(pruned, schema)), list)
