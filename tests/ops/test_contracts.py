"""Shape contracts of operators: what a call is checked against, and what it gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np
import pytest

import tir
from tir import ops, te
from tir.errors import RunError, TensorExpressionError
from tir.ops import operators
from tir.ops.cases import arg, case, concrete
from tir.ops.contract import Contract
from tir.ops.registry import find, forget, operator, tensors_of
from tir.te.symbolic_sizes import noted, requirements

t = te.placeholder
STATED = [name for name, found in operators().items() if found.contract]
WORDS = [
    (name, p.name, p.annotation)
    for name, found in operators().items()
    for p in found.signature.parameters.values()
    if "Literal[" in str(p.annotation)
]


@pytest.mark.parametrize("name", STATED)
def test_what_an_operator_gives_is_as_its_contract_says(name):
    found = operators()[name]
    assert found.contract
    for each in found.cases:
        args, attributes = concrete(each).symbolic()
        given = found.signature.bind(*args, **attributes)
        given.apply_defaults()
        made = found.function(*args, **attributes)
        with requirements():
            found.contract.check_results(
                found.tensors, given.arguments, list(made) if isinstance(made, (list, tuple)) else [made]
            )


@pytest.mark.parametrize(("name", "parameter", "words"), WORDS, ids=[f"{n}.{p}" for n, p, _ in WORDS])
def test_a_word_that_an_operator_does_not_know_is_refused_with_those_it_knows(name, parameter, words):
    found = operators()[name]
    args, attributes = concrete(found.cases[0]).symbolic()
    given = found.signature.bind(*args, **attributes)
    given.apply_defaults()
    for wrong in ("nothing", 7):
        call = inspect.BoundArguments(found.signature, {**given.arguments, parameter: wrong})
        with pytest.raises(TensorExpressionError) as refused:
            found.function(*call.args, **call.kwargs)
        legal = words.partition("[")[2].partition("]")[0]
        assert f"{parameter} is not {wrong!r}" in str(refused.value) and str(refused.value).endswith(f"legal: {legal}")


DENSE = Contract("(…, k) T, (n, k) T, (n) -> (…, n)")
GATES = Contract("(t, i) float, (4h, i), (h, 4h) integer|float -> (t, h)")
ALONG = Contract("(…, c@axis, …), (c), (c, 3) -> (…)")
SAME = Contract("(…, n), (…, n), (…m) -> (…)")
TOGETHER = Contract("(…*), (…*, k), [(…*)] -> (…*)")
JOINED = Contract("[(…, _@axis, …) T] -> (…, _@axis, …)")
REFUSED = {
    "too few dimensions": (DENSE, (t(()), t((4, 5))), r"a has shape \(\), which is not \(…, k\)"),
    "another rank": (DENSE, (t((3, 5)), t((4, 5, 1))), r"b has shape \(4, 5, 1\), which is not \(n, k\)"),
    "another extent": (DENSE, (t((3, 5)), t((4, 6))), r"b \(4, 6\) is not \(n, k\): axis 1 is 6, and k is 5 by a \(3, 5\)"),
    "another type": (DENSE, (t((3, 5)), t((4, 5), "int8")), r"b is int8, but a is float32\n.*\nlegal: ops.astype\(b, \"float32\"\)"),
    "no multiple": (GATES, (t((2, 3)), t((9, 3))), r"b \(9, 3\) is not \(4h, i\): axis 0 is 9, no multiple of 4"),
    "another multiple": (GATES, (t((2, 3)), t((8, 3)), t((2, 9))), r"c \(2, 9\) .* axis 1 is 9, and 4h is 8 by b \(8, 3\)"),
    "no float": (GATES, (t((2, 3), "int8"), t((8, 3))), "a is int8, and holds floats"),
    "no number": (GATES, (t((2, 3)), t((8, 3)), t((2, 8), "bool")), "c is bool, and holds integers or floats"),
    "no axis": (ALONG, (t((2, 3)), t((3,))), "axis 2 is none of a tensor of 2 dimensions"),
    "a number": (ALONG, (t((2, 2, 5)), t((5,)), t((5, 4))), r"c \(5, 4\) is not \(c, 3\): axis 1 is 4"),
    "along an axis": (ALONG, (t((2, 2, 5)), t((4,))), r"b \(4,\) is not \(c\): axis 0 is 4, and c is 5 by a \(2, 2, 5\)"),
    "others of a rest": (SAME, (t((2, 3, 4)), t((2, 5, 4))), r"`…` is \(2, 5\) in b \(2, 5, 4\), and \(2, 3\) in a \(2, 3, 4\)"),
    "fewer of a rest": (SAME, (t((2, 3, 4)), t((3, 4))), r"`…` is \(3,\) in b \(3, 4\), and \(2, 3\) in a"),
    "what broadcasts": (TOGETHER, (t((2, 3)), t((4, 7))), r"shapes \(2, 3\) and \(4,\) do not broadcast: axis 1 of the result would be 3 and 4"),
    "one of several that broadcasts": (TOGETHER, (t((2, 3)), t((7,)), [t((1, 3)), t((5, 1))]), r"shapes \(2, 3\) and .* and \(5, 1\) do not broadcast"),
    "one of several": (JOINED, ([t((2, 2, 4)), t((2, 3, 5))],), r"a\[0\] \(2, 2, 4\) and a\[1\] \(2, 3, 5\) differ beside axis 2"),
    "one of several of another rank": (JOINED, ([t((2, 2, 4)), t((2, 2, 4, 1))],), r"a\[1\] \(2, 2, 4, 1\) differ beside axis 2"),
    "the type of one of several": (JOINED, ([t((2, 2, 4)), t((2, 2, 4), "int8")],), r"a\[1\] is int8, but a\[0\] is float32"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_call_against_a_contract_is_refused_with_both_sizes(what):
    contract, tensors, message = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=message), requirements():
        contract.check("abc", {**dict(zip("abc", tensors)), "axis": 2})


def test_a_contract_says_itself_what_is_legal():
    with pytest.raises(TensorExpressionError) as refused, requirements():
        DENSE.check(("x", "w", "bias"), {"x": t((3, 5)), "w": t((4, 6))})
    assert str(refused.value).endswith("legal: x (…, k) T, w (n, k) T, bias (n) -> (…, n)")


def test_what_a_contract_allows():
    n, m = te.var("n"), te.var("m")
    with requirements():
        DENSE.check("abc", {"a": t((2, 3, n)), "b": t((4, m)), "c": None})
        SAME.check("abc", {"a": t((4,)), "b": t((4,)), "c": t((7, 7))})
        GATES.check("abc", {"a": t((2, 3)), "b": t((n, 3)), "c": t((m, 8))})
        assert [str(c) for c in noted()] == ["m == n", "n % 4 == 0", "m == n // 4", "n // 4 == 2"]
    with requirements():
        TOGETHER.check("abc", {"a": t((2, 1)), "b": t((3, 7)), "c": [t(()), 4.0, t((2, 1))]})
        JOINED.check("a", {"a": [t((2, n)), t((2, m))], "axis": -1})
        JOINED.check("a", {"a": [t((2, n)), t((3,))], "axis": None})  # says nothing
        assert noted() == ()


def test_what_several_results_and_those_that_broadcast_are():
    a, b = t((2, 1)), t((3,))
    TOGETHER.check_results("abc", {"a": a, "b": t((3, 7))}, [t((2, 3))])
    with pytest.raises(TensorExpressionError, match=r"`…\*` is \(1, 3\) in the result \(1, 3\), and \(2, 3\) in"):
        TOGETHER.check_results("abc", {"a": a, "b": t((3, 7))}, [t((1, 3))])
    several = Contract("[(…*)] -> (1), [(…*)]")
    several.check_results("a", {"a": [a, b]}, [t((1,)), t((2, 3)), t((2, 3))])
    with pytest.raises(TensorExpressionError, match=r"`…\*` is \(3,\)"):
        several.check_results("a", {"a": [a, b]}, [t((1,)), t((2, 3)), b])


def test_an_operator_states_its_shapes_or_why_no_text_can():
    assert [name for name, found in operators().items() if (found.contract is None) != bool(found.unstated)] == []
    assert len(STATED) >= 0.75 * len(operators())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(n, k)", "has no `->`"),
        ("(n, k -> (n)", r"no shape begins at '\(n, k'"),
        ("(n, K) -> (n)", "'K' is no extent"),
        ("(…, n, …) -> (n)", r"has more than one …"),
        ("[(n) -> (n)", r"no shape begins at '\[\(n\)'"),
    ],
)
def test_a_text_that_is_no_contract_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Contract(text)


def test_an_operator_has_a_shape_for_each_of_its_tensors():
    def twice(x: te.Tensor, y: te.Tensor | None = None) -> te.Tensor:
        return x

    with pytest.raises(ValueError, match=r"the contract of operator twice is not of its tensors: \(n\) -> \(n\)"):
        operator(section="elementwise", reference=abs, cases=[case(arg((3,)))], shapes="(n) -> (n)")(twice)


@pytest.mark.parametrize(
    "annotation", ["Tensor", "te.Tensor", te.Tensor, te.Tensor | None, "Sequence[Tensor]", Sequence[te.Tensor]], ids=str
)
def test_tensors_are_known_by_annotations_of_a_file_and_of_a_notebook(annotation):
    """Annotations are texts in files that defer them, and types in a notebook."""
    x, base = (inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("x", "base"))
    found = tensors_of(inspect.Signature([x.replace(annotation=annotation), base.replace(annotation=float)]))
    assert found == ("x",)


def test_an_operator_of_the_users_is_checked_by_its_contract():
    @operator(
        section="mine",
        reference=lambda a, b: a + b,
        cases=[case(arg((3,)), arg((3,)))],
        namespace="mine",
        shapes="(n) T, (n) T -> (n)",
    )
    def plus(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        """The sum."""
        return te.compute(a.shape, lambda i: a[i] + b[i], name="plus")  # fmt: skip

    try:
        ops.check("mine.plus")
        with pytest.raises(
            TensorExpressionError, match=r"mine.plus\(a=\(3,\) float32, b=\(4,\) float32\): b \(4,\) is not \(n\)"
        ):
            plus(t((3,)), t((4,)))
        n, m = te.var("n"), te.var("m")
        a, b = t((n,), name="a"), t((m,), name="b")
        built = tir.build(te.create_prim_func([a, b, plus(a, b)]), "llvm")
        with pytest.raises(RunError, match="argument 2 `b` of main: size 0 is 2, but `m` is 3"):
            built(np.ones(3, "float32"), np.ones(2, "float32"), np.ones(3, "float32"))
    finally:
        forget("mine.plus")


def test_a_multiple_is_asserted_when_it_runs():
    n = te.var("n")
    shapes = (2, 3, n), (2, 4 * n), (1, n, 4)
    given = [t(s, name=name) for s, name in zip(shapes, ("scores", "moves", "anchors"))]
    boxes, scores = ops.vision.multibox_transform_loc(*given, (0.1, 0.1, 0.2, 0.2))
    built = tir.build(te.create_prim_func([*given, boxes, scores]), "interpreter")
    results = [np.ones(s, "float32") for s in ((2, 5, 4), (2, 3, 5))]
    built(*(np.ones(s, "float32") for s in ((2, 3, 5), (2, 20), (1, 5, 4))), *results)
    with pytest.raises(RunError, match=r"argument 2 `moves` of main"):
        built(*(np.ones(s, "float32") for s in ((2, 3, 5), (2, 19), (1, 5, 4))), *results)


def test_the_page_of_operators_shows_contracts():
    from tests.tools.generated.operators_page import PAGE

    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{found.contract.text}`" in page for name in STATED if (found := find(name)).contract)
