"""What is wrong with a value, in kube-apiserver's words: the way of the few objects that are.

Owns the order of checks, the texts, and which of several alternatives' faults are told, as
k8s.io/kube-openapi/pkg/validation/validate has them (schema.go, schema_props.go, values.go,
object_validator.go); and ratcheting: faults of a part that an update did not change do not count
(apiextensions-apiserver's ``validation/ratcheting.go``).

>>> from hub.meta.schema.structural import parse
>>> schema = parse({"properties": {"n": {"type": "integer"}}})
>>> value_causes({"n": "x"}, schema)[0].message
'Invalid value: "string": n in body must be of type integer: "string"'
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema import scalars
from hub.meta.schema.correlate import Before
from hub.meta.schema.formats import find
from hub.meta.schema.gotext import marshal, number, quote, same, show
from hub.meta.schema.regex import compile_go
from hub.meta.schema.scalars import Check
from hub.meta.schema.structural import Schema

NOWHERE = "<nil>"
"""How Go prints the path of an error that has none."""


def value_causes(
    obj: Obj, schema: Schema, *, old: Obj | None = None, checks: Mapping[int, Check] | None = None
) -> list[Cause]:
    """Return the faults of a whole object.

    `old` is what an update replaces. `checks` are the predicates of the nodes of `schema` by id:
    with them, parts that are valid are not walked.
    """
    before = None if old is None else Before(obj, old, schema)
    return list(_ratcheted(obj, schema, "", _Walk(before, checks or {})).causes)


@dataclass(frozen=True, slots=True)
class _Walk:
    """What is known of a part from outside: what it replaces, and predicates of nodes."""

    before: Before | None
    checks: Mapping[int, Check]

    def member(self, key: str) -> "_Walk":
        return _Walk(self.before.member(key) if self.before else None, self.checks)

    def item(self, index: int) -> "_Walk":
        return _Walk(self.before.item(index) if self.before else None, self.checks)

    def forget(self) -> "_Walk":
        return _Walk(None, self.checks)


# below a junctor nothing is ratcheted, and passed checks have to be counted
_ALONE = _Walk(None, {})


@dataclass(slots=True)
class _Found:
    """The faults of a value, each told once, and how many checks it went through.

    Of several alternatives that fail the one that went through most is told of.
    """

    causes: dict[Cause, None] = field(default_factory=dict)
    passed: int = 0

    def add(self, *causes: Cause) -> None:
        self.causes.update(dict.fromkeys(causes))

    def merge(self, other: "_Found") -> None:
        self.add(*other.causes)
        self.passed += other.passed


def _ratcheted(value: Any, schema: Schema, path: str, walk: _Walk) -> _Found:
    check = walk.checks.get(id(schema))
    if check is not None and check(value):
        return _Found()
    found = _value(value, schema, path, walk)
    if found.causes and walk.before is not None and walk.before.is_unchanged():
        return _Found(passed=found.passed)
    return found


def _value(value: Any, schema: Schema, path: str, walk: _Walk) -> _Found:
    value = scalars.native(value)
    found = _Found()
    if value is None:
        _null(schema, path, found)
        return found
    if schema.types or scalars.format_of(schema):
        fault = _type_fault(value, schema, path)
        found.add(*fault)
        found.passed += 1 + (not fault)
    found.merge(_junctors(value, schema, path))
    found.passed += 1
    if isinstance(value, str):
        _text(value, schema, path, found)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _number(value, schema, path, found)
        found.passed += 2
    elif isinstance(value, list):
        _list(value, schema, path, walk, found)
        found.passed += 2
    found.add(*_enum_fault(value, schema, path))
    found.passed += 1
    if isinstance(value, dict):
        _object(value, schema, path, walk, found)
        found.passed += 1
    found.passed += 1
    return found


def _null(schema: Schema, path: str, found: _Found) -> None:
    if schema.types and not schema.nullable:
        found.add(_type_invalid(path, ",".join(schema.types), "null"))
    else:
        found.passed += 1
    found.add(*_enum_fault(None, schema, path))


def _type_fault(value: Any, schema: Schema, path: str) -> list[Cause]:
    kind = type(value)
    check = scalars.type_check(schema, kind)
    if check is None or check(value):
        return []
    counted = scalars.format_of(schema)
    name = {str: "string", bool: "boolean", int: "integer", float: "number"}.get(kind)
    name = name or ("array" if kind is list else "object")
    if counted and kind not in (str, list):
        go_format = {int: "int64", float: "float64"}.get(kind, "")
        return [_type_invalid(path, counted, go_format)]
    return [_type_invalid(path, ",".join(schema.types), name)]


def _junctors(value: Any, schema: Schema, path: str) -> _Found:
    rules = schema.rules
    found = _Found()
    if rules.any_of:
        _any_of(value, rules.any_of, path, found)
    if rules.one_of:
        _one_of(value, rules.one_of, path, found)
    if rules.all_of:
        _all_of(value, rules.all_of, path, found)
    if rules.not_ is not None and not _value(value, rules.not_, path, _ALONE).causes:
        found.add(_nowhere(f"{quote(path)} must not validate the schema (not)"))
    found.passed += 1
    return found


def _any_of(value: Any, schemas: Iterable[Schema], path: str, found: _Found) -> None:
    failed: list[_Found] = []
    for schema in schemas:
        result = _value(value, schema, path, _ALONE)
        if not result.causes:
            found.merge(result)
            return
        failed.append(result)
    found.add(_nowhere(f"{quote(path)} must validate at least one schema (anyOf)"))
    found.merge(_best(failed))


def _one_of(value: Any, schemas: Iterable[Schema], path: str, found: _Found) -> None:
    results = [_value(value, schema, path, _ALONE) for schema in schemas]
    valid = [r for r in results if not r.causes]
    if len(valid) == 1:
        found.merge(valid[0])
        return
    count = f"{len(valid)} valid alternatives" if valid else "none valid"
    text = f"{quote(path)} must validate one and only one schema (oneOf). Found {count}"
    found.add(_nowhere(text))
    if not valid:
        found.merge(_best(results))


def _all_of(value: Any, schemas: Iterable[Schema], path: str, found: _Found) -> None:
    results = [_value(value, schema, path, _ALONE) for schema in schemas]
    for result in results:
        found.merge(result)
    if any(r.causes for r in results):
        detail = ". None validated" if all(r.causes for r in results) else ""
        found.add(_nowhere(f"{quote(path)} must validate all the schemas (allOf){detail}"))


def _best(failed: list[_Found]) -> _Found:
    return max(failed, key=lambda r: r.passed)  # the first of equals


def _text(value: str, schema: Schema, path: str, found: _Found) -> None:
    rules = schema.rules
    found.passed += 1
    if rules.max_length is not None and len(value) > rules.max_length:
        unit = "byte" if rules.max_length == 1 else "bytes"
        text = f"Too long: may not be more than {rules.max_length} {unit}"
        found.add(Cause("FieldValueTooLong", text, _at(path)))
    elif rules.min_length is not None and len(value) < rules.min_length:
        detail = f"should be at least {rules.min_length} chars long"
        found.add(_invalid(path, value, detail))
    elif rules.pattern and compile_go(rules.pattern).search(value) is None:
        found.add(_invalid(path, value, f"should match '{rules.pattern}'"))
    counted = scalars.format_of(schema)
    has_format = find(counted) if counted else None
    if has_format is not None:
        if not has_format(value):
            shown = f"{quote(value)}: {path} in body must be of type {counted}: {quote(value)}"
            text = f"Invalid value: {shown}"
            found.add(Cause("FieldValueTypeInvalid", text, _at(path)))
        found.passed += 1


def _number(value: float, schema: Schema, path: str, found: _Found) -> None:
    rules = schema.rules
    if not scalars.in_range(value, schema):
        found.add(_nowhere(_range_text("Checked", schema, path)))
    faults = scalars.boundary_faults(schema)
    if rules.multiple_of is not None:
        _multiple(value, schema, path, found)
    for name, limit, exclusive, is_broken, word in (
        ("Minimum boundary", rules.minimum, rules.exclusive_minimum, scalars.is_below, "greater"),
        ("Maximum boundary", rules.maximum, rules.exclusive_maximum, scalars.is_above, "less"),
    ):
        if limit is None:
            continue
        native: float = value
        if name in faults:
            found.add(_nowhere(_range_text(name, schema, path)))
            native = float(value)
        if is_broken(native, limit, exclusive=exclusive):
            shown = number(int(limit) if isinstance(native, int) else float(limit))
            text = f"should be {word} than {'' if exclusive else 'or equal to '}{shown}"
            found.add(_invalid(path, native, text))


def _multiple(value: float, schema: Schema, path: str, found: _Found) -> None:
    factor = schema.rules.multiple_of or 0
    if "MultipleOf" in scalars.boundary_faults(schema):
        found.add(_nowhere(_range_text("MultipleOf", schema, path)))
        value = float(value)
    if scalars.is_multiple(value, factor):
        return
    whole = int(factor) if isinstance(value, int) else float(factor)
    if whole <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {number(whole)}"
        text = f"Invalid value: {number(whole)}: {detail}"
        found.add(Cause("FieldValueInvalid", text, _at(path)))
    else:
        found.add(_invalid(path, value, f"should be a multiple of {number(whole)}"))


def _range_text(what: str, schema: Schema, path: str) -> str:
    counted = scalars.format_of(schema)
    detail = f"with format {counted}" if counted else "(default format)"
    return f"{what} value must be of type {schema.types[0]} {detail} in {path}"


def _list(value: list[Any], schema: Schema, path: str, walk: _Walk, found: _Found) -> None:
    rules = schema.rules
    if schema.items is not None:
        for index, item in enumerate(value):
            found.merge(_ratcheted(item, schema.items, f"{path}[{index}]", walk.item(index)))
    if rules.min_items is not None and len(value) < rules.min_items:
        detail = f"should have at least {rules.min_items} items"
        found.add(_invalid(path, len(value), detail))
    if rules.max_items is not None and len(value) > rules.max_items:
        found.add(_too_many(path, len(value), rules.max_items))
    if rules.unique_items and _has_twins(value):
        text = f'Invalid value: "": {path} in body shouldn\'t contain duplicates'
        found.add(Cause("FieldValueInvalid", text, _at(path)))


def _has_twins(value: list[Any]) -> bool:
    return any(same(a, b) for i, a in enumerate(value) for b in value[:i])


def _enum_fault(value: Any, schema: Schema, path: str) -> list[Cause]:
    allowed = schema.rules.enum
    if not allowed or scalars.is_one_of(value, allowed):
        return []
    texts = (a if isinstance(a, str) else marshal(a) for a in allowed)
    known = ", ".join(map(quote, texts))
    text = f"Unsupported value: {show(value)}: supported values: {known}"
    return [Cause("FieldValueNotSupported", text, _at(path))]


def _object(value: Obj, schema: Schema, path: str, walk: _Walk, found: _Found) -> None:
    rules = schema.rules
    if rules.min_properties is not None and len(value) < rules.min_properties:
        detail = f"should have at least {rules.min_properties} properties"
        found.add(_invalid(path, len(value), detail))
    if rules.max_properties is not None and len(value) > rules.max_properties:
        found.add(_too_many(path, len(value), rules.max_properties))
    if schema.additional is False:
        for key in value:
            if key not in schema.properties:
                text = f'Invalid value: "{key}": {path}.{key} in body is a forbidden property'
                found.add(Cause("FieldValueInvalid", text, _at(path)))
    elif schema.item_of_map is not None:
        for key in value:
            if key not in schema.properties:
                found.merge(_member(value, key, schema.item_of_map, f"{path}.{key}", walk))
    for key, below in schema.properties.items():
        if key in value:
            found.merge(_member(value, key, below, f"{path}.{key}" if path else key, walk))
    for key in rules.required:
        if key not in value:
            at = f"{path}.{key}".removeprefix(".")
            found.add(Cause("FieldValueRequired", "Required value", at))


def _member(value: Obj, key: str, schema: Schema, path: str, walk: _Walk) -> _Found:
    is_type = path == key and key in ("apiVersion", "kind")  # those of the root
    below = walk.forget() if is_type else walk.member(key)
    return _ratcheted(value[key], schema, path, below)


def _type_invalid(path: str, wanted: str, found: str) -> Cause:
    text = f"{quote(found)}: {path} in body must be of type {wanted}: {quote(found)}"
    return Cause("FieldValueTypeInvalid", f"Invalid value: {text}", _at(path))


def _invalid(path: str, value: Any, detail: str) -> Cause:
    text = f"Invalid value: {show(value)}: {path} in body {detail}"
    return Cause("FieldValueInvalid", text, _at(path))


def _too_many(path: str, count: int, most: int) -> Cause:
    text = f"Too many: {count}: must have at most {most} item{'' if most == 1 else 's'}"
    return Cause("FieldValueTooMany", text, _at(path))


def _nowhere(detail: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "": {detail}', NOWHERE)


def _at(path: str) -> str:
    return path.removeprefix(".") or NOWHERE
