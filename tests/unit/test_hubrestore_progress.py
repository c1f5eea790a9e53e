"""The progress bars of hub-restore: drawn on a terminal, silent elsewhere."""

import pytest

from snapshot.plan import Quiet
from tools.hubrestore import progress
from tools.hubrestore.output import size
from tools.hubrestore.progress import Bar, shown


def test_nothing_is_drawn_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with shown() as told:
        assert isinstance(told, Quiet)
        told.phase("fetch", 10)
        told.advance(10)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_drawn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "is_terminal", lambda: True)
    with shown() as told:
        assert isinstance(told, Bar)


def test_the_rate_is_of_bytes_or_objects_as_the_phase_has_it() -> None:
    times = iter([100.0, 102.0, 200.0, 204.0])
    bar = Bar(now_s=lambda: next(times))
    bar.phase("fetch", 8 << 20)
    bar.advance(4 << 20)
    assert bar.rate() == f"{size(2 << 20)}/s"
    bar.phase("build", 10_000)
    bar.advance(4_000)
    assert bar.rate() == "1,000 objects/s"
    bar.close()


def test_what_is_drawn_has_the_rate_and_how_much_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("click._termui_impl.isatty", lambda _: True)
    at_s = iter(range(100))
    bar = Bar(now_s=lambda: float(next(at_s)))
    bar.phase("copy", 10 << 20)
    bar.advance(5 << 20)
    bar.advance(5 << 20)
    bar.close()
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert "copy" in drawn.err
    assert "100%" in drawn.err
    assert "MiB/s" in drawn.err
