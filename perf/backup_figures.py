"""The figures of one run of `perf.backup`."""

import dataclasses
import json
from dataclasses import dataclass, field

from hub.http.client import Client
from hub.meta import Obj

_WORKS = "/apis/work.open-cluster-management.io/v1/manifestworks"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(slots=True)
class Figures:
    """What was measured; units are in the names."""

    clusters: int
    works: int
    joined_s: float = 0.0
    objects: int = 0
    file_bytes: int = 0
    rss_mib: float = 0.0
    anon_mib: float = 0.0
    new_p50_ms: float = 0.0
    new_p99_ms: float = 0.0
    one_bytes: int = 0
    changed: dict[str, dict[str, float]] = field(default_factory=dict)
    full_bytes: int = 0
    full_s: list[float] = field(default_factory=list)
    full_rss_mib: list[float] = field(default_factory=list)
    full_anon_mib: list[float] = field(default_factory=list)
    quiet_p99_ms: float = 0.0
    full_p99_ms: float = 0.0
    requests: tuple[int, int] = (0, 0)
    restore_s: float = 0.0
    restore_ready_s: float = 0.0
    restored_back_s: dict[str, float] = field(default_factory=dict)
    cold_ready_s: float = 0.0
    copied_back_s: dict[str, float] = field(default_factory=dict)

    def as_obj(self) -> Obj:
        """Return them as JSON."""
        return dataclasses.asdict(self)


async def fleet_of(client: Client, count: int) -> list[str]:
    """Return the paths of `count` works of the fleet, fewer when there are not so many."""
    answer = await client.request("GET", _WORKS, [("accept", _METADATA)], timeout_s=60)
    items = json.loads(answer.body)["items"][:count]
    return [
        "/apis/work.open-cluster-management.io/v1/namespaces/"
        f"{item['metadata']['namespace']}/manifestworks/{item['metadata']['name']}"
        for item in items
    ]
