import sys

import pytest
from sklearn.preprocessing import FunctionTransformer

from crfkit.persistence import dumps, loads, register
from tests.persistence import models


@register(name="test.UsesFunctions")
class UsesFunctions:
    def __init__(self, **functions):
        self.functions = functions


NAMES = ["tests.persistence.models:lower", "tests.persistence.models:upper"]


@pytest.mark.parametrize("allow", [NAMES, {models.lower, models.upper}, [NAMES[0], models.upper]])
def test_allowed_functions_come_back(allow):
    item = UsesFunctions(f=models.lower, g=models.upper, h=models.lower)
    again = loads(dumps(item), allow=allow)
    assert again.functions == item.functions


def test_functions_that_are_not_allowed_are_all_named():
    data = dumps(UsesFunctions(f=models.lower, g=models.upper))
    with pytest.raises(ValueError, match=r"lower.*upper.*load it with allow=\["):
        loads(data)
    with pytest.raises(ValueError, match=r"functions \['tests.persistence.models:upper'\]"):
        loads(data, allow=[models.lower])


def test_only_allowed_modules_are_imported():
    data = dumps(UsesFunctions(f=models.lower))
    module = sys.modules.pop("tests.persistence.models")
    try:
        with pytest.raises(ValueError, match="allow"):
            loads(data)
        assert "tests.persistence.models" not in sys.modules
        assert loads(data, allow=[models.lower]).functions["f"] is models.lower
        assert "tests.persistence.models" not in sys.modules
        loads(data, allow=NAMES)
        assert "tests.persistence.models" in sys.modules
    finally:
        sys.modules["tests.persistence.models"] = module


def inner():
    def function():
        pass

    return function


class HasMethods:
    def method(self):
        pass


@pytest.mark.parametrize(
    "function", [lambda: 0, inner(), HasMethods.method], ids=["lambda", "inner", "method"]
)
def test_functions_without_an_import_name_are_refused(function):
    with pytest.raises(TypeError, match="attribute functions, item 'f': the function .*cannot be"):
        dumps(UsesFunctions(f=function))


def test_functions_of_the_main_program_are_refused(monkeypatch):
    monkeypatch.setattr(models.lower, "__module__", "__main__")
    with pytest.raises(TypeError, match="'lower' stands in __main__"):
        dumps(UsesFunctions(f=models.lower))


def test_callables_that_are_no_functions_are_refused():
    for item in (str.lower, str, HasMethods().method):
        with pytest.raises(TypeError, match="item 'f': a builtins.* cannot be saved"):
            dumps(UsesFunctions(f=item))


def test_an_allowed_function_that_is_gone_is_named(monkeypatch):
    data = dumps(UsesFunctions(f=models.lower))
    monkeypatch.delattr(models, "lower")
    with pytest.raises(ValueError, match="'tests.persistence.models:lower' cannot be imported"):
        loads(data, allow=NAMES)
    monkeypatch.setattr(models, "lower", 3, raising=False)
    with pytest.raises(ValueError, match="lower' is no function but int"):
        loads(data, allow=NAMES)


def test_allow_is_a_list_of_names_or_functions():
    with pytest.raises(TypeError, match="allow must be a list"):
        loads(dumps([]), allow="os:system")
    with pytest.raises(TypeError, match="allow holds 3"):
        loads(dumps([]), allow=[3])


def test_a_function_transformer_keeps_its_function():
    data = dumps(FunctionTransformer(models.lower))
    with pytest.raises(ValueError, match="allow"):
        loads(data)
    assert loads(data, allow=[models.lower]).transform("AB") == "ab"
