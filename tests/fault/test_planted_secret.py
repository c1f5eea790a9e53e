"""Strings planted in what is sealed are found nowhere: at rest, in the bucket, logs, answers.

One hub is made to say and to keep as much as it can (debug log, audit log, refused writes, a crash
in the middle of a segment, a restore), and all of it is searched, decompressed and, of segments,
opened with the hub key. The same string in a ConfigMap is the control: there the search finds it.
"""

import asyncio
import socket
from pathlib import Path

import pytest

from hub.store.key import prefix
from hub.store.value import is_sealed
from snapshot.segment import open_segment
from tests.fault.planted import (
    files_under,
    find,
    forms,
    inflated,
    private_keys,
    segment_contents,
)
from tests.fault.planted_scene import Planted, Scene, ask_as, ask_with_token, live, plant
from tests.hubs import Api


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = Scene(tmp_path_factory.mktemp("planted"), Planted.draw())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    asyncio.run(live(made, port))
    return made


def test_what_was_planted_is_there_for_who_has_the_keys(scene: Scene) -> None:
    """The other tests would pass on an empty store: here it is shown that they do not look at one.

    Opened with the data key, each string stands where it was put, in the state and in the log.
    """
    planted = scene.planted.needles()
    for store in scene.stores():
        opened = [("all", b"".join(store.unsealed(b"")))]
        assert find(planted, opened)["all"] == set(planted) - {"refused"}
    first = next(scene.stores())
    log = [("log", b"".join(first.unsealed(prefix("secrets"), database="log")))]
    assert {"secret", "data", "token", "crash"} <= find(planted, log)["log"]
    assert len(list(private_keys(first.identity()))) == 4  # two CAs, a leaf, the signer of tokens


def test_an_open_string_is_found_wherever_values_lie(scene: Scene) -> None:
    """The control of the searches below: the string in a ConfigMap is sealed by nobody."""
    needle = {"open": forms(scene.planted.open.encode())}
    for store in scene.stores():
        places = find(needle, store.shown())
        assert any(place.startswith("objects b'configmaps") for place in places)
    first = next(scene.stores())
    assert any(place.startswith("log") for place in find(needle, first.shown()))
    file = (scene.data / "store" / "data.mdb").read_bytes()
    assert find(needle, [("", b"".join(inflated(file, first.dictionaries)))])
    held = {
        path.parent.name
        for path in scene.segments()
        if find(needle, segment_contents(path, scene.key, first.dictionaries))
    }
    assert held == {"full", "d0", "merge"}
    assert not find(needle, files_under(scene.bucket))  # its frames are sealed


def test_nothing_planted_lies_in_any_file(scene: Scene) -> None:
    """Stores, kept ones too, bucket, spool, key file, logs, audit logs, scratch: byte by byte."""
    needles = scene.needles()
    places = dict(files_under(scene.place))
    own = needles.pop("hub key")
    assert find({"": own}, places.items()) == {str(scene.place / "hub.key"): {""}}
    assert find(needles, places.items()) == {}
    names = {Path(path).name for path in places}
    assert {"data.mdb", "HEAD", "data.log", "data-audit.log", "admin.kubeconfig"} <= names
    assert scene.spools == sum(name.startswith("left-") for name in names) == 1


def test_nothing_planted_is_in_a_stores_file_after_decompression(scene: Scene) -> None:
    """Values, log, dictionaries and small records; then any stream, in freed pages too."""
    needles = scene.needles()
    for store, name in zip(scene.stores(), ("data", "new"), strict=True):
        assert find(needles, store.shown()) == {}
        file = (scene.place / name / "store" / "data.mdb").read_bytes()
        streams = [(str(at), each) for at, each in enumerate(inflated(file, store.dictionaries))]
        assert len(streams) > 100
        assert find(needles, streams) == {}


def test_nothing_planted_is_in_a_segment_whose_frames_are_opened(scene: Scene) -> None:
    needles, dictionaries = scene.needles(), next(scene.stores()).dictionaries
    records = 0
    for path in scene.segments():
        shown = list(segment_contents(path, scene.key, dictionaries))
        records += len(shown)
        assert find(needles, shown) == {}
    assert records > 100
    assert any(b"secrets" in place.encode() for place, _ in shown)


def test_every_sealed_kind_is_sealed_in_segments_too(scene: Scene) -> None:
    """Whoever has the hub key opens them: with the keys that every full brings along, wrapped."""
    kinds = {kind.encode() for kind in ("secrets", "manifestworks.work.open-cluster-management.io")}
    sealed: set[bytes] = set()
    for path in scene.segments():
        with open_segment(path, scene.key) as reader:
            for record in reader.records():
                kind = bytes(record.key).split(b"\0")[0]
                if record.raw is not None and kind in kinds:
                    assert is_sealed(record.raw), record.key
                    sealed.add(kind)
    assert sealed == kinds


def test_nothing_planted_is_logged(scene: Scene) -> None:
    needles = scene.needles()
    for name in ("data", "new"):
        log = (scene.place / f"{name}.log").read_bytes()
        audit = (scene.place / f"{name}-audit.log").read_bytes()
        assert find(needles, [("log", log), ("audit", audit)]) == {}
        assert b'"level": "debug"' in log
        assert b'"objectRef"' in audit
    assert b'"code":409' in (scene.place / "data-audit.log").read_bytes()


def test_nothing_planted_is_said_to_who_did_not_ask_for_it(scene: Scene) -> None:
    """Errors, every kind that is not sealed, tables, metadata, metrics, and what hub-restore says.

    A string that was refused is not repeated to its own writer either.
    """
    needles = scene.needles()
    assert len(scene.said) > 100
    assert find(needles, scene.said) == {}
    assert find({"open": forms(scene.planted.open.encode())}, scene.said)
    verbs = {what for what, _ in scene.said if what.startswith("hub-restore ")}
    assert verbs >= {
        f"hub-restore {verb}" for verb in ("list", "plan", "verify", "keycheck", "diff")
    }


@pytest.mark.parametrize("library", ["ngh2", "h2"])
async def test_no_credential_is_logged_by_the_libraries(
    tmp_path: Path, free_port: int, library: str
) -> None:
    """Whatever a library would say at the level debug of the headers that it reads."""
    scene = Scene(tmp_path, Planted.draw())
    with scene.hub("data", free_port, "--http2", library) as hub:
        api = Api.from_kubeconfig(hub.kubeconfig)
        await plant(api, scene.planted)
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await api.create(accounts, {"metadata": {"name": "robot"}})
        made = await api.create(f"{accounts}/robot/token", {"spec": {"expirationSeconds": 600}})
        token = str(made["status"]["token"])
        await ask_with_token(scene, hub.kubeconfig)
        await ask_as(scene, hub.kubeconfig, token)
        await api.close()
        assert hub.stop() == 0
        log = hub.log.read_bytes()
    needles = {**scene.planted.needles(), "robot": forms(token.rpartition(".")[2].encode())}
    assert b'"level": "debug"' in log
    assert find(needles, [("log", log)]) == {}
