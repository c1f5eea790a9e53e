"""Simple JSON paths: members by name only, as scale and selectable fields have them.

>>> simple_path(".spec.replicas")
('spec', 'replicas')
>>> field_text({"spec": {"replicas": 3}}, ("spec", "replicas"))
'3'
"""

from hub.meta import Obj
from hub.meta.codec.json import encode
from hub.meta.jsonpath import JsonPath, Key


def simple_path(text: str) -> tuple[str, ...]:
    """Return the names of a path; "" is the path of nothing.

    Raises ValueError for one that is no simple path.
    """
    if not text:
        return ()
    if not text.startswith("."):
        raise ValueError("must start with a dot")
    names = []
    for step in JsonPath.parse(text).steps:
        if not isinstance(step, Key):
            raise ValueError("must name members only, such as .spec.replicas")  # noqa: TRY004  a wrong text
        names.append(step.name)
    return tuple(names)


def value_at(obj: Obj, path: tuple[str, ...]) -> object:
    """Return the value there, None when there is none."""
    value: object = obj
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def field_text(obj: Obj, path: tuple[str, ...]) -> str:
    """Return the value there as field selectors compare it, "" when there is none."""
    value = value_at(obj, path)
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()
