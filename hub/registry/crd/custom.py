"""The kind that an established CustomResourceDefinition describes.

Owns how a version's schema becomes a view (prune, default, convert by None) and a strategy
(validate, selectable fields). Mirrors apiextensions-apiserver's ``pkg/apiserver/
customresource_handler.go`` and ``pkg/registry/customresource``. Versions of one kind differ in
schema, columns, subresources and selectable fields, so each has a `Kind` of its own; all store
under one id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hub.meta import Obj
from hub.meta.errors import Cause
from hub.meta.schema.default import default
from hub.meta.schema.prune import prune
from hub.meta.schema.structural import Schema, parse
from hub.meta.schema.validate import UNCHECKED, Validator
from hub.registry.crd.conditions import is_true
from hub.registry.crd.paths import field_text, simple_path
from hub.registry.crd.replicas import replica_causes
from hub.registry.kind import Kind, ScalePaths, Served, View
from hub.registry.objects import meta_of
from hub.registry.printing import Printer, age_printer, name_printer, path_printer
from hub.registry.strategy import Strategy

_TERMINATING = "create not allowed while custom resource definition is terminating"


class Compiled:
    """A version's schema, parsed and compiled when it is first needed."""

    def __init__(self, raw: Obj, scale: ScalePaths | None = None) -> None:
        self._raw, self._scale = raw, scale

    @cached_property
    def schema(self) -> Schema:
        """Return the parsed schema."""
        return parse(self._raw)

    @cached_property
    def validator(self) -> Validator:
        """Return the compiled validation."""
        return Validator(self.schema)

    def causes(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        """Return what is wrong with an object; with `old`, faults that it had are forgiven."""
        if old is None:
            found = self.validator.validate(new)
        else:
            found = self.validator.validate_update(new, old)
        if self._scale is None:
            return found
        notes = [cause for cause in found if cause is UNCHECKED]
        faults = [cause for cause in found if cause is not UNCHECKED]
        known = [] if old is None else replica_causes(old, self._scale)
        faults += [cause for cause in replica_causes(new, self._scale) if cause not in known]
        return [*faults, *notes]

    def prune(self, obj: Obj) -> tuple[Obj, list[str]]:
        """Return an object without unknown fields, and their paths."""
        return prune(obj, self.schema)

    def default(self, obj: Obj) -> Obj:
        """Return an object with its defaults."""
        return default(obj, self.schema)


class CustomStrategy(Strategy):
    """A version's rules.

    `paths` are the selectable fields of all versions (what objects are indexed by), `selectable`
    those of this one. `is_ending`: the definition is being deleted.
    """

    def __init__(
        self,
        compiled: Compiled,
        *,
        paths: Sequence[str],
        selectable: Sequence[str],
        is_ending: bool,
    ) -> None:
        self._compiled, self._is_ending = compiled, is_ending
        self._paths = {path.removeprefix("."): simple_path(path) for path in paths}
        self._selectable = tuple(path.removeprefix(".") for path in selectable)

    def creation_refusal(self) -> str:
        """Refuse new objects of a kind that goes (``forbidCreateAdmission``)."""
        return _TERMINATING if self._is_ending else ""

    def default(self, obj: Obj) -> None:
        """Fill the schema's defaults."""
        filled = self._compiled.default(obj)
        if filled is not obj:
            obj.clear()
            obj.update(filled)

    def validate(self, obj: Obj) -> list[Cause]:
        """Return where an object breaks the schema (CEL rules are not tried)."""
        return self._compiled.causes(obj)

    def validate_change(self, new: Obj, old: Obj) -> list[Cause]:
        """Return the same, but for faults of what the update leaves alone."""
        return self._compiled.causes(new, old)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        """Return the selectable fields."""
        return {name: field_text(obj, path) for name, path in self._paths.items()}

    def selectable(self) -> tuple[str, ...]:
        """Return their names."""
        return self._selectable


@dataclass(frozen=True, slots=True)
class Custom:
    """What a definition comes to: the kind as stored, and each version as it is served."""

    kind: Kind
    served: tuple[Served, ...]


def custom_kind(definition: Obj) -> Custom:
    """Return the kind that a definition with accepted names describes."""
    spec = definition["spec"]
    versions = [v for v in spec["versions"] if v.get("served") or v.get("storage")]
    versions.sort(key=lambda v: not v.get("storage"))
    paths = list(dict.fromkeys(p for v in versions for p in _selectable(v)))
    compiled = [Compiled(v["schema"]["openAPIV3Schema"], _scale(v)) for v in versions]
    # objects that were written before the definition changed are put right when they are read
    is_old = int(meta_of(definition).get("generation") or 1) > 1
    storage = _view(spec, versions[0], compiled[0], versions[0], is_old=is_old)
    kinds = []
    for version, code in zip(versions, compiled, strict=True):
        is_storage = version is versions[0]
        view = storage
        if not is_storage:
            view = _view(spec, version, code, versions[0], is_old=is_old)
        views = (storage,) if is_storage else (storage, view)
        strategy = CustomStrategy(
            code,
            paths=paths,
            selectable=_selectable(version),
            is_ending=is_true(definition, "Terminating"),
        )
        kinds.append((_kind(definition, version, views, strategy), view))
    served = tuple(Served(kind, view) for kind, view in kinds if view.is_served)
    return Custom(kinds[0][0], served)


def _selectable(version: Obj) -> list[str]:
    return [str(field["jsonPath"]) for field in version.get("selectableFields") or ()]


def _view(spec: Obj, version: Obj, code: Compiled, storage: Obj, *, is_old: bool) -> View:
    group, name = str(spec["group"]), str(version["name"])
    shown, stored = f"{group}/{name}", f"{group}/{storage['name']}"

    def to_storage(obj: Obj) -> Obj:
        return {**code.default(obj), "apiVersion": stored}

    def from_storage(obj: Obj) -> Obj:
        known = code.prune(obj)[0] if is_old else obj
        return {**code.default(known), "apiVersion": shown}

    return View(
        group,
        name,
        printers=_printers(version),
        prune=code.prune,
        to_storage=to_storage,
        from_storage=from_storage,
        is_served=bool(version.get("served")),
        is_read_through=is_old,
        warning=_warning(spec, version),
    )


def _warning(spec: Obj, version: Obj) -> str:
    if not version.get("deprecated"):
        return ""
    name = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
    return version.get("deprecationWarning") or f"{name} is deprecated"


def _printers(version: Obj) -> tuple[Printer, ...]:
    columns = version.get("additionalPrinterColumns")
    if not columns:
        return (name_printer(), age_printer("date"))
    return (
        name_printer(),
        *(
            path_printer(
                str(c["name"]),
                str(c["jsonPath"]),
                type_=str(c["type"]),
                format_=str(c.get("format") or ""),
                description=str(c.get("description") or ""),
                priority=int(c.get("priority") or 0),
            )
            for c in columns
        ),
    )


def _kind(definition: Obj, version: Obj, views: tuple[View, ...], strategy: Strategy) -> Kind:
    names = definition["status"]["acceptedNames"]
    subresources = version.get("subresources") or {}
    return Kind(
        kind=str(names["kind"]),
        plural=str(names["plural"]),
        singular=str(names.get("singular") or ""),
        list_name=str(names.get("listKind") or ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        views=views,
        is_namespaced=definition["spec"]["scope"] == "Namespaced",
        strategy=strategy,
        subresources=tuple(n for n in ("status", "scale") if subresources.get(n) is not None),
        has_generation=True,
        is_custom=True,
        returns_deleted=False,
        scale=_scale(version),
    )


def _scale(version: Obj) -> ScalePaths | None:
    raw = (version.get("subresources") or {}).get("scale")
    if not raw:
        return None
    return ScalePaths(
        replicas=simple_path(str(raw["specReplicasPath"])),
        current=simple_path(str(raw["statusReplicasPath"])),
        selector=simple_path(str(raw.get("labelSelectorPath") or "")),
    )
