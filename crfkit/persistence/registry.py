"""The classes whose objects, and the functions whose names, may stand in a model file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from inspect import isabstract
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeVar, overload

# Modules that register classes of other rooms: those of most files, and all others.
_CLASSES = ("crfkit.persistence.classes", "crfkit.persistence.further_classes")
# Modules that register classes, their own and scikit-learn's, once their names are imported.
_REGISTERING = (
    "crfkit.estimators",
    "crfkit.compat.sklearn_crfsuite",
    "crfkit.calibration",
    "crfkit.collective",
)

FUNCTION_TYPES = (FunctionType, BuiltinFunctionType)

Class = TypeVar("Class", bound=type)
Check = Callable[[Any], None]


class Registry:
    """Names of classes, and how their restored objects are checked."""

    def __init__(self) -> None:
        self._classes: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._checks: dict[type, Check] = {}
        self._rooms: list[ModuleType] = []

    def add(self, cls: type, name: str | None = None, check: Check | None = None) -> None:
        """Give a class a name; ValueError if another class has it."""
        chosen = name or f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"
        known = self._classes.get(chosen, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(
                f"the name {chosen!r} is taken by {known.__module__}.{known.__qualname__}: "
                "choose another one with register(name=...)."
            )
        self._classes[chosen], self._names[cls] = cls, chosen
        if check is not None:
            self._checks[cls] = check

    def add_room(self, room: ModuleType) -> None:
        """Take the public classes of a module, and those of its dicts, now and later."""
        self._rooms.append(room)
        self._name_classes()

    def _name_classes(self) -> None:
        """Give the classes of all rooms their names; a dict may have got another one."""
        for room in self._rooms:
            for cls in _public_classes(room):
                if cls not in self._names:
                    self.add(cls)

    def name(self, cls: type) -> str | None:
        """Return the name of a class, None if it has none."""
        for module in _CLASSES:
            if cls not in self._names:
                import_module(module)
                self._name_classes()
        return self._names.get(cls)

    def find(self, name: Any) -> type:
        """Return the class of a name; ValueError if there is none."""
        if not isinstance(name, str):
            raise ValueError(f"the name of a class is {name!r:.80}")
        import_module(_CLASSES[0])
        for more in (_import_named, _import_further, _import_all):
            if name not in self._classes:
                more(name)
        if name not in self._classes:
            self._name_classes()
        if name not in self._classes:
            raise ValueError(
                f"the class {name!r:.80} is not known: import the package that registers it, or "
                "upgrade crfkit"
            )
        return self._classes[name]

    def check(self, item: Any) -> None:
        """Raise ValueError if the state of a restored object does not fit together."""
        for check in (self._checks.get(type(item)), getattr(type(item), "_check_state", None)):
            if check is not None:
                check(item)


def _import_named(name: str) -> None:
    """Import the estimator of a name."""
    room, attribute = import_module(_REGISTERING[0]), name.removeprefix("crfkit.")
    if attribute in room.__all__:
        getattr(room, attribute)


def _import_further(name: str) -> None:
    """Import the classes of which few files have any."""
    import_module(_CLASSES[1])


def _import_all(name: str) -> None:
    """Import all that registers classes, if the name is of a package whose classes these are."""
    if name.startswith(("crfkit.", "sklearn.")):
        for room in map(import_module, _REGISTERING):
            list(map(partial(getattr, room), room.__all__))


def _public_classes(room: ModuleType) -> Iterator[type]:
    """Yield the classes that a module exports, or else defines, and those of its dicts."""
    names = getattr(room, "__all__", None)
    for name in list(vars(room) if names is None else names):
        item = getattr(room, name)
        own = not name.startswith("_") and getattr(item, "__module__", "") == room.__name__
        if (own or names is not None) and isinstance(item, (type, Mapping)):
            found = item.values() if isinstance(item, Mapping) else [item]
            for cls in found:
                is_protocol = getattr(cls, "_is_protocol", False)
                if isinstance(cls, type) and not isabstract(cls) and not is_protocol:
                    yield cls


REGISTRY = Registry()


@overload
def register(cls: Class) -> Class: ...
@overload
def register(
    *, name: str | None = None, check: Check | None = None
) -> Callable[[Class], Class]: ...
def register(cls: Any = None, *, name: str | None = None, check: Check | None = None) -> Any:
    """Allow the objects of a class in model files.

    An object is stored as what its ``__getstate__`` returns, a dict of attributes, and restored
    without calling ``__init__``; a NamedTuple and a subclass of list are stored as their items.
    Subclasses are not registered with their parent.

    Parameters
    ----------
    cls : type
        The class; or use it as a decorator with arguments.
    name : str, optional
        Its name in files, for all time; the package and the class, "crfkit.CRFClassifier", if not
        given.
    check : callable, optional
        Called with each restored object; raises ValueError where the parts do not fit together. A
        method ``_check_state`` of the class is called as well. Compiled code reads arrays without
        looking at their bounds, so a class that hands its arrays to such code needs one of both.

    Raises
    ------
    ValueError
        If the name belongs to another class.

    Examples
    --------
    >>> from crfkit.persistence import dumps, loads, register
    >>> @register(name="example.Point")
    ... class Point:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> loads(dumps(Point(2.5))).x
    2.5
    """
    if cls is None:
        return partial(register, name=name, check=check)
    REGISTRY.add(cls, name, check)
    return cls


def register_room(room: ModuleType) -> None:
    """Allow the objects of all classes that a module exports, in its dicts too, in model files."""
    REGISTRY.add_room(room)


def function_name(function: Callable[..., Any]) -> str:
    """Return ``module:name`` of a function; TypeError unless it is at the top of a module."""
    module, name = function.__module__, function.__qualname__
    if module == "__main__":
        raise TypeError(
            f"the function {name!r} stands in __main__, where no other program finds it: put it "
            "into a module and import it from there"
        )
    found = getattr(sys.modules.get(module), name, None) if module else None
    if found is not function:
        raise TypeError(
            f"the function {module}:{name} cannot be imported by its name: only functions at the "
            "top of a module can be saved, no lambdas, methods or inner functions"
        )
    return f"{module}:{name}"


def known_functions(
    allow: Iterable[str | Callable[..., Any]],
) -> dict[str, Callable[..., Any] | None]:
    """Return the functions that a file may name, None where one is still to be imported."""
    if isinstance(allow, str):
        raise TypeError(f"allow must be a list of names or functions, such as [{allow!r}].")
    known: dict[str, Callable[..., Any] | None] = {}
    for item in allow:
        if isinstance(item, str):
            known.setdefault(item, None)
        elif isinstance(item, FUNCTION_TYPES):
            known[f"{item.__module__}:{item.__qualname__}"] = item
        else:
            raise TypeError(f"allow holds {item!r}, which is neither a name nor a function.")
    return known


def find_functions(
    known: dict[str, Callable[..., Any] | None], wanted: Iterable[str]
) -> dict[str, Callable[..., Any]]:
    """Return the functions that a file wants, by name; ValueError if one is not allowed."""
    names = sorted(set(wanted))
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"the model uses the functions {missing}, which would run as a part of it. If you "
            f"know and trust them, load it with allow={missing}"
        )
    return {name: known[name] or _imported(name) for name in names}


def _imported(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"the allowed function {name!r} cannot be imported ({error}): install or restore the "
            "module that has it"
        ) from error
    if not isinstance(found, FUNCTION_TYPES):
        raise ValueError(f"{name!r} is no function but {type(found).__name__}")
    return found
