"""What the demo is about and what came of it: the plan, what was seen before, the statements."""

from dataclasses import dataclass, field
from pathlib import Path

from hub.meta import Obj
from hub.store import Position
from tools.simulate.identity import IdentityStore
from tools.simulate.look import Sight


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What to show, and where: `directory` must be empty, `object_store` too."""

    directory: Path
    object_store: str
    clusters: int = 25
    works: int = 1
    addons: int = 1
    steady: str = "2s"
    """How long the clusters must stay available, before and after."""

    @property
    def key_file(self) -> Path:
        """Return where the hub key is: the one thing kept besides the object store."""
        return self.directory / "hub.key"

    @property
    def state_dir(self) -> Path:
        """Return where the simulated clusters keep their identities."""
        return self.directory / "agents"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement of the demo, and whether it holds."""

    text: str
    is_true: bool


@dataclass(slots=True)
class DemoResult:
    """What the demo saw; `seconds` by step."""

    checks: list[Check] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    reports: list[Obj] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        """Whether every statement holds."""
        return bool(self.checks) and all(check.is_true for check in self.checks)


@dataclass(frozen=True, slots=True)
class Before:
    """What was there before the kill."""

    sight: Sight
    rows: list[Obj]
    """What ``hublet clusters -o json`` told."""
    dead: Position
    certificates: dict[str, str]


def compare(
    plan: DemoPlan,
    before: Before,
    restored: Obj,
    *,
    after: Sight,
    rows: list[Obj],
    result: DemoResult,
) -> list[Check]:
    """Return the statements of the demo; `rows` is what ``hublet clusters`` tells afterwards."""
    first, second = result.reports
    new_csrs = len(after.csr_uids - before.sight.csr_uids)
    total = plan.clusters
    is_same_state = restored["state_hash"] == before.dead.state_hash.hex()
    return [
        Check(
            f"{first['clusters_available']}/{total} clusters joined,"
            f" {first['works_done']}/{total * plan.works} works applied,"
            f" {first['addons_done']}/{total * plan.addons} add-ons available",
            first["passed"] and _is_whole(first, plan),
        ),
        Check(
            f"state equal by state_hash: {restored['state_hash'][:16]} at revision"
            f" {restored['revision']}, before {position_text(before.dead)}",
            is_same_state and restored["revision"] == before.dead.revision,
        ),
        Check(
            f"{second['clusters_available']}/{total} clusters back and available,"
            f" {second['works_done']}/{total * plan.works} works applied,"
            f" {second['addons_done']}/{total * plan.addons} add-ons available,"
            f" {second['evictions']['begun']} works evicted",
            second["passed"] and _is_whole(second, plan) and not second["evictions"]["begun"],
        ),
        Check(
            f"{new_csrs} new CSRs ({len(before.sight.csr_uids)} before, {len(after.csr_uids)}"
            f" after by uid; the agents made {second['csrs_created']})",
            len(before.sight.csr_uids) >= total
            and after.csr_uids == before.sight.csr_uids
            and second["csrs_created"] == 0,
        ),
        Check(
            f"{second['certificates_reused']}/{total} agents went on with the certificate they had",
            second["certificates_reused"] == total and certificates_of(plan) == before.certificates,
        ),
        Check(
            "the same hub: same CA, same uids of clusters, works and add-ons",
            after.ca_pem == before.sight.ca_pem and after.uids == before.sight.uids,
        ),
        Check(
            f"hublet clusters tells the same of {_same(before.rows, rows)}/{total} clusters as"
            " before, but for HEARD",
            _same(before.rows, rows) == len(before.rows) == len(rows) == total
            and all(_is_as_planned(row, plan) for row in rows),
        ),
    ]


def _is_whole(report: Obj, plan: DemoPlan) -> bool:
    done = (report["clusters_available"], report["works_done"], report["addons_done"])
    return done == (plan.clusters, plan.clusters * plan.works, plan.clusters * plan.addons)


def _same(before: list[Obj], after: list[Obj]) -> int:
    """Return of how many clusters the tables tell the same; when they were heard of is another."""
    told = {row["name"]: {**row, "heard": ""} for row in before}
    return sum(told.get(row["name"]) == {**row, "heard": ""} for row in after)


def _is_as_planned(row: Obj, plan: DemoPlan) -> bool:
    told = (row["accepted"], row["joined"], row["available"], row["works"], row["addons"])
    return told == (True, "True", "True", plan.works, plan.addons)


def certificates_of(plan: DemoPlan) -> dict[str, str]:
    """Return the certificate of every simulated cluster, as its state directory has it."""
    names = [path.stem for path in plan.state_dir.glob("*.json")]
    found = [IdentityStore(plan.state_dir).find(name) for name in names]
    return {identity.cluster: identity.cert_pem for identity in found if identity}


def position_text(position: Position) -> str:
    """Return a state hash and a revision, as the demo tells them."""
    return f"{position.state_hash.hex()[:16]} at revision {position.revision}"
