from pathlib import Path

import pytest

from tools.check_sizes import FUNCTION_LINES, MODULE_LINES, main


def _function(lines: int) -> str:
    return "@staticmethod\nasync def long():\n" + "    pass\n" * (lines - 1)


def test_a_module_and_a_function_at_the_limit_pass(tmp_path: Path) -> None:
    function = _function(FUNCTION_LINES)
    (tmp_path / "a.py").write_text(function + "x = 1\n" * (MODULE_LINES - FUNCTION_LINES - 1))
    assert main([str(tmp_path)]) == 0


def test_one_line_over_either_limit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n" * (MODULE_LINES + 1))
    (tmp_path / "b.py").write_text(_function(FUNCTION_LINES + 1))
    assert main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "a.py:1: module has 601 lines" in out
    assert "b.py:2: function long has 71 lines" in out


def test_generated_tables_are_exempt(tmp_path: Path) -> None:
    (tmp_path / "_generated").mkdir()
    (tmp_path / "_generated" / "table.py").write_text("x = 1\n" * 5000)
    (tmp_path / "a.py").write_text("x = 1\n")
    assert main([str(tmp_path)]) == 0


def test_a_root_without_modules_is_an_error_not_a_pass(tmp_path: Path) -> None:
    assert main([str(tmp_path / "absent")]) == 1
