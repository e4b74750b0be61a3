"""The shape of the package, read off its syntax trees.

`tests/test_architecture.py` holds the rules of the house with it, and
`benchmarks/architecture.py` counts with it, for any checkout of the package.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Class(NamedTuple):
    """A class of the package: the path of its module below the package, and its syntax tree."""

    path: str
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def methods(self) -> dict[str, Function]:
        return {n.name: n for n in self.node.body if isinstance(n, Function)}


class Sources:
    """All modules of a package.

    Parameters
    ----------
    root : Path
        The folder of the package.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts = {
            str(path.relative_to(root)): path.read_text(encoding="utf-8")
            for path in sorted(root.rglob("*.py"))
        }
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}
        imports: dict[str, list[ast.ImportFrom]] = {path: [] for path in self.trees}
        for path, node in self.nodes(ast.ImportFrom):
            imports[path].append(node)
        self._names = {path: self._names_of(path, found) for path, found in imports.items()}

    def nodes(self, kind: type | tuple[type, ...], room: str = "") -> Iterator[tuple[str, ast.AST]]:
        """Yield the nodes of a kind, each with the path of its module; of kinds, one by one."""
        for known, found in self._nodes.items():
            if issubclass(known, kind):
                for path, node in found:
                    if not room or room_of(path) == room:
                        yield path, node

    @cached_property
    def _nodes(self) -> dict[type, list[tuple[str, ast.AST]]]:
        found: dict[type, list[tuple[str, ast.AST]]] = {}
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                found.setdefault(type(node), []).append((path, node))
        return found

    @cached_property
    def functions(self) -> list[tuple[str, Function]]:
        return list(self.nodes((ast.FunctionDef, ast.AsyncFunctionDef)))

    @cached_property
    def classes(self) -> list[Class]:
        return [Class(path, node) for path, node in self.nodes(ast.ClassDef)]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Class]:
        return {(c.path, c.name): c for c in self.classes}

    def _module(self, name: str) -> str | None:
        """The path of a module of the package, given its full name."""
        stem = "/".join(name.split(".")[1:])
        found = (path for path in (f"{stem}.py", f"{stem}/__init__.py".lstrip("/")))
        return next((path for path in found if path in self.trees), None)

    def _names_of(self, path: str, nodes: list[ast.ImportFrom]) -> dict[str, tuple[str, str]]:
        """Names that a module imports from the package: the module they come from, their name."""
        package = [self.root.name, *path.split("/")[:-1]]
        names = {}
        for node in nodes:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module.split(".")[0] == self.root.name:
                for alias in node.names:
                    names[alias.asname or alias.name] = (module, alias.name)
        return names

    def find(self, path: str, name: str) -> Class | None:
        """Find the class of the package that a name stands for in a module; None if none is."""
        seen = set()
        while (path, name) not in self._by_name:
            origin = self._names[path].get(name)
            source = origin and self._module(origin[0])
            if not source or (path, name) in seen:
                return None
            seen.add((path, name))
            path, name = source, origin[1]
        return self._by_name[path, name]

    def _class_of(self, path: str, expression: ast.expr) -> Class | None:
        """Find the class that an expression names, as `Base`, `Base[T]` or `module.Base`."""
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
            module, name = self._names[path].get(expression.value.id, ("", ""))
            source = self._module(f"{module}.{name}") if module else None
            return self.find(source, expression.attr) if source else None
        return self.find(path, expression.id) if isinstance(expression, ast.Name) else None

    def ancestors(self, cls: Class) -> list[Class]:
        """All classes of the package that a class inherits from, nearest first."""
        found: list[Class] = []
        for base in cls.node.bases:
            parent = self._class_of(cls.path, base)
            if parent is not None:
                found += [c for c in [parent, *self.ancestors(parent)] if c not in found]
        return found

    def concrete_overrides(self) -> list[str]:
        """Methods that replace a method with a body, of a class of the package."""
        found = []
        for cls in self.classes:
            for name in cls.methods:
                replaced = (a for a in self.ancestors(cls) if name in a.methods)
                base = next((a for a in replaced if is_concrete(a.methods[name])), None)
                if base is not None:
                    found.append(f"{cls.path} {cls.name}.{name} overrides {base.name}")
        return found

    def inherited(self) -> dict[str, int]:
        """How many classes of the package each class is made of, itself counted.

        What stands for a class of scikit-learn is none of the package.
        """
        own = {c: [a for a in self.ancestors(c) if a.path != "_callbacks.py"] for c in self.classes}
        return {f"{c.path} {c.name}": 1 + len(above) for c, above in own.items()}

    def class_checks(self) -> Iterator[tuple[str, str, Class]]:
        """Yield where an object is asked for a class of the package: module, text, class."""
        for path, node in self.nodes((ast.Call, ast.Compare)):
            for expression in _asked_classes(node):
                cls = self._class_of(path, expression)
                if cls is not None:
                    yield path, ast.unparse(node), cls

    def probes(self) -> Iterator[tuple[str, ast.Call]]:
        """Yield calls of hasattr and of getattr with a written name: does the object have it?"""
        for path, node in self.nodes(ast.Call):
            called = _called(node) in ("getattr", "hasattr")
            if called and isinstance(node.args[1], ast.Constant):
                yield path, node

    def identifiers(self) -> Iterator[tuple[str, str]]:
        """Yield the names that modules define: of classes, functions, parameters, variables."""
        for path, node in self.nodes((ast.ClassDef, ast.FunctionDef, ast.arg, ast.Name)):
            if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store):
                yield path, getattr(node, "name", "") or getattr(node, "arg", "") or node.id
        for path, node in self.nodes(ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                yield path, node.attr

    def ladders(self) -> int:
        """How often an object's class or attributes are asked for, in any way."""
        calls = sum(
            _called(node) in ("isinstance", "getattr", "hasattr")
            for _, node in self.nodes(ast.Call)
        )
        return calls + sum(bool(_types_compared(node)) for _, node in self.nodes(ast.Compare))

    def positions(self) -> list[str]:
        """Places where a kernel reads an anonymous tuple by position, once for each name bound."""
        return [
            f"{path} {function.name}: {text}"
            for path, function in self.nodes((ast.FunctionDef,), "kernels")
            for text in _positions(function)
        ]

    def untyped(self) -> list[str]:
        """Parameters of kernels that are typed `Any`, or as a tuple without names."""
        return [
            f"{path} {function.name}({parameter.arg})"
            for path, function in self.nodes((ast.FunctionDef,), "kernels")
            for parameter in parameters(function)
            if _is_anonymous(parameter)
        ]

    def code_lines(self) -> int:
        """Lines with code: without blank lines, comments and docstrings."""
        return sum(len(_code_lines(text, self.trees[p])) for p, text in self.texts.items())

    def lines(self) -> int:
        """All lines."""
        return sum(len(text.splitlines()) for text in self.texts.values())


def room_of(path: str) -> str:
    """The first part of a module's name below the package."""
    first = path.split("/")[0].removesuffix(".py")
    return {"__init__": "", "__main__": "cli"}.get(first, first)


def body(function: Function) -> list[ast.stmt]:
    """The statements of a function behind its docstring."""
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def is_concrete(function: Function) -> bool:
    """Whether a method does something: an abstract one only tells, passes or raises."""
    empty = (ast.Pass, ast.Raise)
    statements = [
        s for s in body(function)
        if not isinstance(s, empty) and not (isinstance(s, ast.Expr) and _is_ellipsis(s.value))
    ]  # fmt: skip
    abstract = any("abstract" in ast.unparse(d) or "overload" in ast.unparse(d)
                   for d in function.decorator_list)  # fmt: skip
    return bool(statements) and not abstract


def parameters(function: Function) -> list[ast.arg]:
    """All parameters of a function but self and cls."""
    arguments = function.args
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [a for a in found if a.arg not in ("self", "cls")]


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _called(node: ast.AST) -> str:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if named else ""


def _types_compared(node: ast.AST) -> list[ast.expr]:
    """The classes c of a comparison ``type(x) is c``, ``is not``, ``==``, ``in``."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(_called(side) == "type" for side in sides):
            return [side for side in sides if _called(side) != "type"]
    return []


def _asked_classes(node: ast.AST) -> list[ast.expr]:
    """The classes that a call of isinstance or a comparison of types asks for."""
    called = _called(node) in ("isinstance", "issubclass")
    asked = [node.args[1]] if called else _types_compared(node)
    return [e for a in asked for e in _alternatives(a)]


def _alternatives(expression: ast.expr) -> list[ast.expr]:
    if isinstance(expression, ast.Tuple):
        return [e for part in expression.elts for e in _alternatives(part)]
    if isinstance(expression, ast.BinOp):
        return [*_alternatives(expression.left), *_alternatives(expression.right)]
    return [expression]


def _is_anonymous(parameter: ast.arg) -> bool:
    kind = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    return kind in ("Any", "tuple") or kind.startswith("tuple[")


def _positions(function: ast.FunctionDef) -> list[str]:
    """Texts of what reads a parameter typed `Any`, or what was taken out of one, by position."""
    tuples = {a.arg for a in parameters(function) if _is_anonymous(a)}
    found = []
    for node in sorted(ast.walk(function), key=lambda n: getattr(n, "lineno", 0)):
        if isinstance(node, ast.Assign):
            for target, value in _assigned(node):
                if _root(value) in tuples:
                    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
                    tuples |= set(names)
                    found += names if isinstance(target, ast.Tuple) else []
        elif isinstance(node, ast.Subscript) and _is_number(node.slice):
            if _root(node) in tuples:
                found.append(ast.unparse(node))
    return found


def _assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        pair = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        if pair and len(target.elts) == len(node.value.elts):
            yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _root(node: ast.expr) -> str | None:
    """The name that constant subscripts are taken of; None where there are others."""
    while isinstance(node, ast.Subscript) and _is_number(node.slice):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _code_lines(text: str, tree: ast.Module) -> set[int]:
    """Numbers of the lines that hold code."""
    told = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = {
        line
        for node in ast.walk(tree)
        if isinstance(node, told) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
              tokenize.ENDMARKER, tokenize.ENCODING)  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - documented
