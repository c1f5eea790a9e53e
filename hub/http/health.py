"""Health and metrics: /healthz, /livez, /readyz with named checks, and /metrics for Prometheus.

A check is a function that returns what is wrong, "" when nothing is. Mirrors the texts of
k8s.io/apiserver/pkg/server/healthz.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest

from hub.http.info import RequestInfo
from hub.http.reply import Reply

Check: TypeAlias = Callable[[], str]
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """The checks of a hub.

    A hub is *live* while its process can answer, *ready* when it may serve.
    """

    def __init__(
        self, *, live: Mapping[str, Check], ready: Mapping[str, Check], metrics: CollectorRegistry
    ) -> None:
        self._checks = {"/livez": dict(live), "/healthz": dict(live), "/readyz": {**live, **ready}}
        self._metrics = metrics

    def answer(self, info: RequestInfo, reply: Reply) -> bool:
        """Answer a health or metrics path; False when `info` is neither."""
        if info.path == "/metrics":
            reply.send(200, generate_latest(self._metrics), _METRICS_TYPE)
            return True
        root, _, name = info.path[1:].partition("/")
        checks = self._checks.get(f"/{root}")
        if checks is None or (name and name not in checks):
            return False
        if name:
            checks = {name: checks[name]}
        excluded = info.query.get("exclude", "")
        self._report(root, {n: c for n, c in checks.items() if n != excluded}, info, reply)
        return True

    @staticmethod
    def _report(root: str, checks: Mapping[str, Check], info: RequestInfo, reply: Reply) -> None:
        results = {name: check() for name, check in checks.items()}
        is_ok = not any(results.values())
        if is_ok and "verbose" not in info.query:
            reply.text(200, "ok")
            return
        lines = [
            f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok"
            for name, problem in results.items()
        ]
        lines.append(f"{root} check {'passed' if is_ok else 'failed'}")
        reply.text(200 if is_ok else 500, "\n".join(lines) + "\n")
