"""Checks of annotations with array shapes while tests run; outside the tests they cost nothing.

jaxtyping's hook wraps every function at import, and inner functions at every call of the outer one, and checks every
call. This takes a tenth of the time of the tests. This hook wraps only functions of modules and classes, at their first
call, and checks only their first calls in each test.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from types import CodeType, ModuleType
from typing import Any
from unittest.mock import patch

import beartype
import jaxtyping

CALLS = 10
"""Number of calls of a function to check in each test."""
# As everywhere in Python, an int is valid where a float is expected.
TYPES = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))


class _Current:
    test = 0


def begin_test() -> None:
    """Start to check first calls again."""
    _Current.test += 1


def check_at_run_time(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Check the arguments and the result of a function at its first calls in a test."""
    wrapped, test, left = None, -1, 0

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal wrapped, test, left
        if test != _Current.test:
            test, left = _Current.test, CALLS
        if left <= 0:
            return fn(*args, **kwargs)
        left -= 1
        wrapped = wrapped or jaxtyping.jaxtyped(fn, typechecker=TYPES)
        return wrapped(*args, **kwargs)

    return call


def check_fields_at_run_time(cls: type) -> type:
    """Check the fields of a dataclass when an instance is made."""
    if dataclasses.is_dataclass(cls) and "__init__" in vars(cls):
        cls.__init__ = check_at_run_time(vars(cls)["__init__"])  # type: ignore[method-assign]
    return cls


class _Wrapping(ast.NodeTransformer):
    """Transformer that adds a check below the other decorators of every outer function, and one above every class."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list.append(
            ast.copy_location(ast.Name(check_at_run_time.__name__, ast.Load()), node)
        )
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        first = ast.copy_location(ast.Name(check_fields_at_run_time.__name__, ast.Load()), node)
        node.decorator_list.insert(0, first)
        return node


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(
            {each.__name__: each for each in (check_at_run_time, check_fields_at_run_time)}
        )
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType | None:
        # Keep this bytecode in a different file from Python's own bytecode of the module.
        own = functools.partial(cache_from_source, optimization="checked1")
        with patch("importlib._bootstrap_external.cache_from_source", own):
            return super().get_code(fullname)

    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *, _optimize: int = -1
    ) -> CodeType:
        tree = _Wrapping().visit(ast.parse(data, path))
        return super().source_to_code(tree, path, _optimize=_optimize)


class Hook(MetaPathFinder):
    """Import hook that loads modules with these names and checks their annotations."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module with one of these names."""
        if fullname not in self.names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec

    def install(self) -> None:
        """Install this finder before all others."""
        sys.meta_path.insert(0, self)
