"""The worked examples in the docstrings hold."""

import doctest
import importlib
import pkgutil

import pytest

import hub.meta

MODULES = [m.name for m in pkgutil.walk_packages(hub.meta.__path__, "hub.meta.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    found = [
        t for name in MODULES for t in finder.find(importlib.import_module(name)) if t.examples
    ]
    assert len(found) >= 7
