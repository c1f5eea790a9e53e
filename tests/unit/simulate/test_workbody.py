"""The order of the work agent's patches, and the bodies against those OCM's agent sent."""

import copy

from hub.meta import Obj
from hub.meta.patch import merge_patch
from tools.simulate.workbody import FINALIZER, Step, is_done, new_work, next_step, step_patch


def _created() -> Obj:
    work = new_work("c1", 3)
    metadata = {"uid": "u", "resourceVersion": "5", "generation": 1}
    return {**work, "metadata": {**work["metadata"], **metadata}}


def _advance(work: Obj, now: str = "2026-11-30T18:46:36Z") -> tuple[Step, Obj, Obj]:
    """Apply the next patch as a hub would; return step, patch and the work after it."""
    step = next_step(work)
    patch = step_patch(work, step, now=now)
    after: Obj = merge_patch(copy.deepcopy(work), patch)
    after["metadata"]["resourceVersion"] = str(int(work["metadata"]["resourceVersion"]) + 1)
    return step, patch, after


def _until_done(work: Obj) -> tuple[list[Step], Obj]:
    steps = []
    while next_step(work) is not Step.NOTHING:
        step, _, work = _advance(work)
        steps.append(step)
    return steps, work


def test_a_new_work_gets_finalizer_then_applied_then_available() -> None:
    steps, work = _until_done(_created())
    assert steps == [Step.ADD_FINALIZER, Step.REPORT_APPLIED, Step.REPORT_AVAILABLE]
    assert is_done(work)


def test_every_patch_carries_uid_and_revision() -> None:
    work = _created()
    while next_step(work) is not Step.NOTHING:
        revision = work["metadata"]["resourceVersion"]
        _, patch, work = _advance(work)
        assert patch["metadata"]["uid"] == "u"
        assert patch["metadata"]["resourceVersion"] == revision


def test_each_manifest_is_reported_in_spec_order() -> None:
    _, work = _until_done(_created())
    results = work["status"]["resourceStatus"]["manifests"]
    assert [r["resourceMeta"]["resource"] for r in results] == ["configmaps", "deployments"]
    assert [r["resourceMeta"]["group"] for r in results] == ["", "apps"]
    assert [[c["type"] for c in r["conditions"]] for r in results] == [
        ["Applied", "Available", "StatusFeedbackSynced"]
    ] * 2


def test_a_new_generation_is_reported_again_and_keeps_transition_times() -> None:
    _, work = _until_done(_created())
    work["metadata"]["generation"] = 2
    assert not is_done(work)
    step, patch, work = _advance(work, now="2027-01-01T00:00:00Z")
    assert step is Step.REPORT_APPLIED
    applied = patch["status"]["conditions"][0]
    assert applied["observedGeneration"] == 2
    assert applied["lastTransitionTime"] == "2026-11-30T18:46:36Z"
    assert next_step(work) is Step.REPORT_AVAILABLE


def test_a_deleted_work_is_told_and_then_let_go() -> None:
    _, work = _until_done(_created())
    work["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    assert not is_done(work)
    step, patch, work = _advance(work)
    assert step is Step.REPORT_DELETING
    assert [c["type"] for c in patch["status"]["conditions"]] == [
        "Applied",
        "Available",
        "Deleting",
    ]
    step, patch, work = _advance(work)
    assert step is Step.REMOVE_FINALIZER
    assert patch["metadata"]["finalizers"] is None
    assert next_step(work) is Step.NOTHING


def test_the_finalizers_of_others_stay() -> None:
    work = _created()
    work["metadata"]["finalizers"] = ["other"]
    _, patch, work = _advance(work)
    assert patch["metadata"]["finalizers"] == ["other", FINALIZER]
    work["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    _, _, work = _advance(work)
    _, patch, _ = _advance(work)
    assert patch["metadata"]["finalizers"] == ["other"]


def test_works_of_one_fleet_have_valid_distinct_names() -> None:
    names = {new_work("c1", number)["metadata"]["name"] for number in range(50)}
    assert len(names) == 50
