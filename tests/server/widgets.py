"""The kind that the recorded kubectl tours define, and what tests do with such kinds."""

import asyncio
import copy
from collections.abc import Callable

from hub.meta import Obj
from tests.hubs import Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SPEC: Obj = {
    "type": "object",
    "required": ["color"],
    "properties": {
        "replicas": {
            "type": "integer",
            "minimum": 0,
            "maximum": 10,
            "default": 1,
            "description": "How many.",
        },
        "color": {
            "type": "string",
            "enum": ["red", "green", "blue"],
            "description": "The colour.",
        },
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "size": {"x-kubernetes-int-or-string": True},
                },
            },
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.parts) || self.replicas >= 1", "message": "parts need a replica"}
    ],
}
_STATUS: Obj = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
}
_VERSION: Obj = {
    "name": "v1",
    "served": True,
    "storage": True,
    "additionalPrinterColumns": [
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    "selectableFields": [{"jsonPath": ".spec.color"}],
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "required": ["spec"],
            "properties": {"spec": _SPEC, "status": _STATUS},
        }
    },
}


def widget_definition(group: str = "demo.example.com") -> Obj:
    """The recorded definition, in a group of one's own."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": "Widget",
                "plural": "widgets",
                "singular": "widget",
                "shortNames": ["wd"],
                "categories": ["all"],
            },
            "versions": [copy.deepcopy(_VERSION)],
        },
    }


def version_of(definition: Obj, index: int = 0) -> Obj:
    found: Obj = definition["spec"]["versions"][index]
    return found


def schema_of(definition: Obj, index: int = 0) -> Obj:
    """The schema of spec."""
    found: Obj = version_of(definition, index)["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def condition(obj: Obj, type_: str) -> Obj:
    """A condition without its time; empty when there is none."""
    found = (obj.get("status") or {}).get("conditions") or []
    for each in found:
        if each["type"] == type_:
            return {k: v for k, v in each.items() if k != "lastTransitionTime"}
    return {}


async def until(api: Api, path: str, wanted: Callable[[Obj], bool]) -> Obj:
    """Follow one object by a watch until it is as wanted."""
    parent, _, name = path.rpartition("/")
    async with api.watch(f"{parent}?watch=1&fieldSelector=metadata.name%3D{name}") as watch:
        while True:
            found = (await watch.next())["object"]
            if wanted(found):
                return dict(found)


async def until_gone(api: Api, path: str) -> None:
    """Wait until there is no such object."""
    async with asyncio.timeout(10):
        parent, _, name = path.rpartition("/")
        async with api.watch(f"{parent}?watch=1&fieldSelector=metadata.name%3D{name}") as watch:
            if (await api.call("GET", path)).status == 404:
                return
            while (await watch.next())["type"] != "DELETED":
                pass


async def define(api: Api, definition: Obj) -> Obj:
    """Create a definition and return it once it is established."""
    await api.create(DEFINITIONS, definition)
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    return await until(api, path, lambda obj: condition(obj, "Established").get("status") == "True")


def widgets(definition: Obj, namespace: str, version: str = "v1") -> str:
    return f"/apis/{definition['spec']['group']}/{version}/namespaces/{namespace}/widgets"


def widget(name: str, color: str = "red", **spec: object) -> Obj:
    return {"metadata": {"name": name}, "spec": {"color": color, **spec}}
