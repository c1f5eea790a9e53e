"""The size rules of the house, as a check: a module has at most 600 lines, a function at most 70.

Walks the Python files under the roots it is given (default: the packages, tests and perf); files
below a directory named ``_generated`` are exempt. Prints one line a finding and exits 1 when there
is any. Standard library only.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 600
FUNCTION_LINES = 70
ROOTS = ("hub", "snapshot", "tools", "tests", "perf")
EXEMPT = "_generated"


def findings(path: Path) -> Iterator[str]:
    """Yield ``path:line: what is too long`` for a module; decorators do not count to a function."""
    source = path.read_text(encoding="utf-8")
    lines = len(source.splitlines())
    if lines > MODULE_LINES:
        yield f"{path}:1: module has {lines} lines, at most {MODULE_LINES}: split it by noun"
    for node in ast.walk(ast.parse(source, str(path))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            yield (
                f"{path}:{node.lineno}: function {node.name} has {length} lines, "
                f"at most {FUNCTION_LINES}: split it by step"
            )


def modules(roots: list[Path]) -> Iterator[Path]:
    """Yield the checked modules under `roots` in order."""
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if EXEMPT not in path.parts:
                yield path


def main(argv: list[str]) -> int:
    """Check the roots in `argv`, or the repository's own."""
    top = Path(__file__).resolve().parent.parent
    roots = [Path(arg) for arg in argv] or [top / root for root in ROOTS]
    checked = list(modules(roots))
    if not checked:
        print(f"error: no modules under {', '.join(map(str, roots))}", file=sys.stderr)
        return 1
    found = [line for path in checked for line in findings(path)]
    print("\n".join([*found, f"sizes: {len(checked)} modules checked, {len(found)} too long"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
