"""What the tests of the Python client share; its code blocks, so it runs beside the hub's loop."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import yaml
from kubernetes import client, watch

from hub.meta import Obj

ROOT_CA = "kube-root-ca.crt"
T = TypeVar("T")


async def run(call: Callable[[], T]) -> T:
    """Run blocking client code beside the hub's loop."""
    async with asyncio.timeout(30):
        return await asyncio.to_thread(call)


def fresh(prefix: str = "py") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def make_namespace(api: client.ApiClient, name: str) -> client.CoreV1Api:
    """Create a namespace and wait until it has what every namespace has."""
    core = client.CoreV1Api(api)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    found = watch.Watch()
    selector = f"metadata.name={ROOT_CA}"
    for _ in found.stream(core.list_namespaced_config_map, name, field_selector=selector):
        found.stop()
    return core


def config_map(name: str, **labels: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name=name, labels=labels or None), data={"x": "1"}
    )


def plain(api: client.ApiClient, model: object) -> Obj:
    """The model as JSON has it."""
    found = api.sanitize_for_serialization(model)
    assert isinstance(found, dict)
    return found


def kubeconfig(path: Path) -> Obj:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict)
    return found
