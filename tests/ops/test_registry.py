"""The table of operators: names, namespaces, errors of calls, operators of other packages."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import tir
from tir import extension, ops, te
from tir.errors import TensorExpressionError
from tir.ops import arg, case, operator, registry

X = te.placeholder((3, 4), name="X")
CASES = [case(arg((3,), "float32"))]


@pytest.fixture
def table(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "OPERATORS", dict(registry.OPERATORS))
    monkeypatch.setattr(registry, "_NAMES", dict(registry._NAMES))


def half(x: te.Tensor) -> te.Tensor:
    """Half of ``x``."""
    return te.compute(x.shape, lambda *i: x[i] * 0.5, name="half")


def test_names_and_aliases_are_attributes():
    assert ops.broadcast_add is ops.add is tir.ops.add is tir.topi.add
    assert {"add", "broadcast_add"} <= set(dir(ops))
    assert ops.find("broadcast_add") is ops.operators()["add"]


def test_no_file_hides_an_operator():
    for name, found in ops.operators().items():
        namespace, _, short = name.rpartition(".")
        place = ops if not namespace else getattr(ops, namespace)
        assert getattr(place, short) is found.function, name


def test_every_operator_has_a_docstring_with_an_example():
    missing = [name for name, found in ops.operators().items() if ">>>" not in (inspect.getdoc(found.function) or "")]
    assert not missing


def test_a_namespace(table):
    operator(section="other", reference=lambda x: x / 2, cases=CASES, namespace="mine", aliases=("halved",))(half)
    assert ops.mine.half is ops.mine.halved
    assert "half" in dir(ops.mine)
    ops.check("mine.half")
    with pytest.raises(AttributeError, match=r"mine\.hal; did you mean mine\.half"):
        ops.mine.hal


def test_a_wrong_operator_is_found(table):
    operator(section="other", reference=lambda x: x / 2 + (np.arange(3) == 1), cases=CASES)(half)
    with pytest.raises(AssertionError, match=r"half\(3 float32\): element \(1,\) of float32\[3\] is"):
        ops.check("half")


def test_an_error_of_an_operator_outside_of_tir_names_the_line_that_calls_it(table):
    def wrong(x: te.Tensor) -> te.Tensor:
        raise te.error("never right")

    def misspelled(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.var("i") / 2, name="misspelled")

    for function in (wrong, misspelled):
        operator(section="other", reference=np.copy, cases=CASES, namespace="mine")(function)
    with pytest.raises(te.TensorExpressionError, match=r"ops\.mine\.wrong\(X\)  # here"):
        ops.mine.wrong(X)  # here
    with pytest.raises(te.TensorExpressionError, match=r'te\.var\("i"\) / 2'):  # of its formula that of the formula
        ops.mine.misspelled(X)


def test_a_name_is_taken_once(table):
    with pytest.raises(ValueError, match=r"broadcast_add of operator half is taken by add \(tir\.ops\.arithmetic\)"):
        operator(section="other", reference=np.add, cases=CASES, aliases=("broadcast_add",))(half)
    assert "half" not in ops.operators()


def test_an_operator_has_cases(table):
    with pytest.raises(ValueError, match="has no cases"):
        operator(section="other", reference=np.add, cases=[])(half)


def test_operators_of_another_package(table, monkeypatch):
    """Modules of the entry point group are imported when a name is not known."""
    monkeypatch.setattr(extension, "_import", functools.cache(extension._import.__wrapped__))

    class Entry:
        name, value = "half", "elsewhere"

        def load(self):
            operator(section="other", reference=lambda x: x / 2, cases=CASES)(half)

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Entry()] if group == "tir.operators" else [])
    assert ops.half(X).shape == X.shape
    assert "half" in ops.operators()


REFUSED = {
    "no tensor": (lambda: ops.add("x", X), "add(x='x', y=(3, 4) float32): an operand is a tensor or a number"),
    "too few": (lambda: ops.add(X), "missing a required argument: 'y'", "legal: add(x, y)"),
    "shapes": (lambda: ops.add(X, te.placeholder((3,))), "axis 1 of the result would be 4 and 3"),
    "symbolic shapes": (lambda: ops.add(X, te.placeholder((te.var("n"),))), "4 and n, which are not known to be equal"),
    "kinds": (
        lambda: ops.add(X, te.placeholder((4,), "int32")),
        "no common type of float and integer",
        'ops.astype(x, "float32")',
    ),
    "a float among integers": (lambda: ops.add(te.placeholder((4,), "int32"), 0.5), "the number 0.5 is a float"),
    "a number that does not fit": (lambda: ops.add(te.placeholder((4,), "int8"), 300), "300 does not fit int8"),
    "types without a common one": (
        lambda: ops.add(te.placeholder((4,), "int8"), te.placeholder((4,), "uint64")),
        "no integer type holds both",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_show_the_call_and_the_users_line(name):
    call, *texts = REFUSED[name]
    with pytest.raises(TensorExpressionError) as caught:
        call()
    for text in texts:
        assert text in str(caught.value)
    assert caught.value.place.filename == __file__
