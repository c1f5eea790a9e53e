"""ClusterManagementAddOn between v1alpha1 (stored) and v1beta1.

The rules are those of OCM's conversion (api: addon/v1beta1/conversion.go, read as facts): a kind of
config that an add-on supports, with or without a default, becomes a default config; one without a
default gets a name that no object can have, which v1alpha1 never shows. Pure; both directions
leave their argument alone. Two things differ from OCM's converter, which goes through Go's structs:
durations stay as they are written ("1h", not "1h0m0s"), and absent fields are not filled with
empty or null ones.
"""

from hub.fleet.addon_view import V1ALPHA1, V1BETA1
from hub.meta import Obj

NO_DEFAULT = "__reserved_no_default__"
"""The name of the default config of a kind that has none."""


def to_v1beta1(obj: Obj) -> Obj:
    """Return the stored object as v1beta1 shows it."""
    shown = {**obj, "apiVersion": V1BETA1}
    if "spec" in obj:
        spec = _without(obj["spec"], "addOnConfiguration", "supportedConfigs")
        spec.setdefault("addOnMeta", {})
        supported = obj["spec"].get("supportedConfigs")
        if supported:
            spec["defaultConfigs"] = [_default_config(config) for config in supported]
        shown["spec"] = spec
    status = obj.get("status") or {}
    shown["status"] = _renamed(status, "defaultconfigReferences", "defaultConfigReferences")
    return shown


def to_v1alpha1(obj: Obj) -> Obj:
    """Return a v1beta1 object as it is stored."""
    stored = {**obj, "apiVersion": V1ALPHA1}
    if "spec" in obj:
        spec = _without(obj["spec"], "addOnConfiguration", "defaultConfigs", "supportedConfigs")
        configs = obj["spec"].get("defaultConfigs")
        if configs:
            spec["supportedConfigs"] = [_supported_config(config) for config in configs]
        stored["spec"] = spec
    if "status" in obj:
        stored["status"] = _renamed(
            obj["status"] or {}, "defaultConfigReferences", "defaultconfigReferences"
        )
    return stored


def _default_config(supported: Obj) -> Obj:
    config = _without(supported, "defaultConfig")
    return {**config, **(supported.get("defaultConfig") or {"name": NO_DEFAULT})}


def _supported_config(config: Obj) -> Obj:
    supported = _without(config, "name", "namespace")
    if config.get("name") not in (None, "", NO_DEFAULT):
        names = ("name", "namespace")
        supported["defaultConfig"] = {n: config[n] for n in names if config.get(n)}
    return supported


def _renamed(status: Obj, old: str, new: str) -> Obj:
    shown = _without(status, old, new)
    if old in status:
        shown[new] = status[old]
    return shown


def _without(obj: Obj, *names: str) -> Obj:
    return {name: value for name, value in obj.items() if name not in names}
