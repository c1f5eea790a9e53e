"""The Python client's patches: it chooses the media type by the body."""

import asyncio
import uuid

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from tests.hubs import InProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_dicts_go_strategically_and_lists_as_json_patches(hub: InProcess) -> None:
    api = config.new_client_from_config(str(hub.kubeconfig))
    name = f"py-{uuid.uuid4().hex[:8]}"

    def tour() -> None:
        core = client.CoreV1Api(api)
        core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
        robot = client.V1ServiceAccount(
            metadata=client.V1ObjectMeta(name="robot"), secrets=[client.V1ObjectReference(name="a")]
        )
        core.create_namespaced_service_account(name, robot)
        found = core.patch_namespaced_service_account("robot", name, {"secrets": [{"name": "b"}]})
        assert [s.name for s in found.secrets or []] == ["b", "a"]
        steps = [{"op": "remove", "path": "/secrets/0"}]
        found = core.patch_namespaced_service_account("robot", name, steps)
        assert [s.name for s in found.secrets or []] == ["a"]
        with pytest.raises(ApiException) as refused:
            core.patch_namespaced_service_account("robot", name, [{**steps[0], "path": "/x"}])
        assert refused.value.status == 422

    try:
        async with asyncio.timeout(30):
            await asyncio.to_thread(tour)
    finally:
        api.close()
