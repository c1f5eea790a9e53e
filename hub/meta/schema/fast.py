"""Whether a value is valid, as one closure a schema: the way of the many objects that are.

Owns speed only. It says yes or no without paths or messages; `hub.meta.schema.explain`,
`hub.meta.schema.listtype` and `hub.meta.schema.embedded` say what is wrong, and a property test
holds the two together: a value is valid here exactly when they find nothing.

>>> from hub.meta.schema.structural import parse
>>> is_valid = compile_check(parse({"type": "object", "properties": {"n": {"maximum": 3}}}))
>>> is_valid({"n": 3}), is_valid({"n": 4})
(True, False)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hub.meta.schema import embedded, listtype, scalars
from hub.meta.schema.structural import Schema

Check: TypeAlias = Callable[[Any], bool]


def compile_check(schema: Schema, by_id: dict[int, Check] | None = None) -> Check:
    """Return the predicate of `schema`; those of all its nodes go to `by_id`, by id.

    Nodes below allOf, anyOf, oneOf and not are not among them.
    """
    return _compile(schema, {} if by_id is None else by_id)


def _compile(schema: Schema, by_id: dict[int, Check] | None) -> Check:
    # without by_id: below a junctor, where list types and embedded resources count for nothing
    shared = [c for c in (scalars.enum_check(schema), *_junctors(schema)) if c is not None]
    by_kind: dict[type, tuple[Check, ...]] = {type(None): _null_checks(schema)}
    for kind in (str, bool, int, float, list, dict):
        type_check = scalars.type_check(schema, kind)
        if type_check is scalars.REFUSED:
            by_kind[kind] = (_never,)
            continue
        own = _own_check(schema, kind, by_id)
        by_kind[kind] = tuple(c for c in (type_check, own, *shared) if c is not None)
    check = _dispatch(by_kind)
    if by_id is not None:
        by_id[id(schema)] = check
    return check


def _own_check(schema: Schema, kind: type, by_id: dict[int, Check] | None) -> Check | None:
    if kind is dict:
        return _object_check(schema, by_id)
    if kind is list:
        return _list_check(schema, by_id)
    if kind is str:
        return scalars.text_check(schema)
    return scalars.number_check(schema) if kind in (int, float) else None


def _dispatch(by_kind: Mapping[type, tuple[Check, ...]]) -> Check:
    allowed = [kind for kind, checks in by_kind.items() if checks != (_never,)]
    if len(allowed) == 1 and len(by_kind[allowed[0]]) <= 1:  # the common leaf
        only = allowed[0]
        if not by_kind[only]:
            return _Exactly(only)
        (check,) = by_kind[only]
        return lambda value: type(value) is only and check(value)

    def is_valid(value: Any) -> bool:
        for check in by_kind[type(value)]:  # noqa: SIM110 -- a generator costs as much as a check
            if not check(value):
                return False
        return True

    return is_valid


@dataclass(frozen=True, slots=True)
class _Exactly:
    """The check of a type and nothing else, told apart so that objects need not call it."""

    kind: type

    def __call__(self, value: Any) -> bool:
        return type(value) is self.kind


def _never(_: Any) -> bool:
    return False


def _null_checks(schema: Schema) -> tuple[Check, ...]:
    is_refused = (schema.types and not schema.nullable) or schema.rules.enum
    return (_never,) if is_refused else ()


def _junctors(schema: Schema) -> list[Check]:
    rules = schema.rules
    found = [_compile(s, None) for s in rules.all_of]
    if rules.any_of:
        found.append(_any_of([_compile(s, None) for s in rules.any_of]))
    if rules.one_of:
        found.append(_one_of([_compile(s, None) for s in rules.one_of]))
    if rules.not_ is not None:
        found.append(_negation(_compile(rules.not_, None)))
    return found


def _any_of(checks: list[Check]) -> Check:
    return lambda value: any(check(value) for check in checks)


def _one_of(checks: list[Check]) -> Check:
    return lambda value: sum(check(value) for check in checks) == 1


def _negation(check: Check) -> Check:
    return lambda value: not check(value)


def _list_check(schema: Schema, by_id: dict[int, Check] | None) -> Check | None:
    rules = schema.rules
    least, most = rules.min_items or 0, rules.max_items
    item = None
    if schema.items is not None:
        item = _compile(schema.items, by_id)
    is_unique = listtype.check(schema) if by_id is not None else None
    if rules.min_items is None and most is None and item is None and is_unique is None:
        return None if not rules.unique_items else listtype.has_no_duplicates

    def check(value: list[Any]) -> bool:
        if len(value) < least or (most is not None and len(value) > most):
            return False
        if item is not None:
            for each in value:
                if not item(each):
                    return False
        if rules.unique_items and not listtype.has_no_duplicates(value):
            return False
        return is_unique is None or is_unique(value)

    return check


def _object_check(schema: Schema, by_id: dict[int, Check] | None) -> Check | None:
    checks = [_size_check(schema), _fields_check(schema, by_id)]
    if by_id is not None and schema.traits.is_embedded:
        checks.append(lambda v: embedded.is_sure(v) or not embedded.resource_causes(v, ""))
    found = [check for check in checks if check is not None]
    if len(found) == 2:
        first, second = found
        return lambda value: first(value) and second(value)
    if len(found) <= 1:
        return found[0] if found else None
    return lambda value: all(check(value) for check in found)


def _size_check(schema: Schema) -> Check | None:
    least, most = schema.rules.min_properties, schema.rules.max_properties
    if least is None and most is None:
        return None
    return lambda v: len(v) >= (least or 0) and (most is None or len(v) <= most)


def _fields_check(schema: Schema, by_id: dict[int, Check] | None) -> Check | None:
    required = frozenset(schema.rules.required)
    known = {name: _compile(node, by_id) for name, node in schema.properties.items()}
    others: Check | None = None
    if schema.item_of_map is not None:
        others = _compile(schema.item_of_map, by_id)
    elif schema.additional is False:
        others = _never
    if not known and others is None:
        return (lambda value: required <= value.keys()) if required else None
    if not known and isinstance(others, _Exactly) and not required:
        return _all_exactly(others.kind)
    # a type in place of a check saves the call; most fields are leaves
    tests = {name: c.kind if isinstance(c, _Exactly) else c for name, c in known.items()}
    return _fields(tests, others, required)


def _fields(
    tests: Mapping[str, Check | type], others: Check | None, required: frozenset[str]
) -> Check:
    find = tests.get

    def check(value: dict[str, Any]) -> bool:
        for key, item in value.items():
            test = find(key, others)
            if type(test) is type:
                if type(item) is not test:
                    return False
            elif test is not None and not test(item):
                return False
        return not required or required <= value.keys()

    return check


def _all_exactly(kind: type) -> Check:
    def check(value: dict[str, Any]) -> bool:
        for item in value.values():  # noqa: SIM110 -- a generator costs as much as a check
            if type(item) is not kind:
                return False
        return True

    return check
