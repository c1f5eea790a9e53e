"""Discovery: what clients compute from it."""

import json

from hub.http.discovery import Discovery
from tests.unit.registry.given import CATALOG


def test_the_hash_of_the_storage_version_is_the_one_that_clients_compute() -> None:
    """The first eight bytes of the SHA-256 of group, version and kind, in base64."""
    found = Discovery(CATALOG).find("/api/v1", "application/json")
    assert found is not None
    hashes = {
        each["name"]: each.get("storageVersionHash") for each in json.loads(found.body)["resources"]
    }
    assert hashes["configmaps"] == "qFsyl6wFWjQ="
    assert hashes["secrets"] == "S6u1pOWzb84="
