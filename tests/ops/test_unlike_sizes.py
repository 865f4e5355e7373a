"""No operator reads outside of its tensors where their sizes are not those it takes them to be, nor with data out of range."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tir
from tir import te
from tir.arith import simplify
from tir.errors import RunError, TensorExpressionError
from tir.expr import Var, const
from tir.interp import numbers, run
from tir.ops.cases import Argument, Case, concrete
from tir.ops.check import Judged
from tir.ops.registry import Operator, operators
from tir.visit import substitute


def kinds_of_cases(operator: Operator) -> Iterator[Case]:
    """A case for each number of dimensions and set of attributes."""
    seen = set()
    for case in operator.cases:
        kind = (*(len(a.shape) for a in case.arguments()), *sorted(case.attributes))
        if kind not in seen:
            seen.add(kind)
            yield case


class Unlike:
    """A case of an operator whose extents, but for those of 1, are variables of their own."""

    def __init__(self, operator: Operator, case: Case):
        self.variables: list[Var] = []
        self.tensors: list[te.Tensor] = []
        self.arrays = list(concrete(case).arrays.values())
        self.sizes = [s for a in self.arrays for s in a.shape if s != 1]
        given = iter(self.arrays)
        with_variables = case.mapped(lambda a: self._tensor(a, next(given).shape))
        made = operator.function(*with_variables.args, **with_variables.attributes)
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        self.func = te.create_prim_func([*self.tensors, *outputs])

    def _tensor(self, argument: Argument, sizes: tuple[int, ...]) -> te.Tensor:
        shape = [1 if s == 1 else te.var(f"d{len(self.variables) + n}") for n, s in enumerate(sizes)]
        self.variables += [s for s in shape if isinstance(s, Var)]
        self.tensors.append(te.placeholder(shape, argument.dtype, name=f"x{len(self.tensors)}"))
        return self.tensors[-1]

    def run(self, sizes: list[int]) -> None:
        """Run on the executor with the arrays cut to ``sizes``."""
        left, values = iter(sizes), {v: const(s) for v, s in zip(self.variables, sizes)}
        arrays = [a[tuple(slice(1 if s == 1 else next(left)) for s in a.shape)].copy() for a in self.arrays]
        for buffer in self.func.buffers()[len(arrays) :]:
            shape = [int(simplify(substitute(s, values)).value) for s in buffer.shape]
            arrays.append(np.zeros(shape, numbers.storage_dtype(buffer.dtype)))
        run(self.func, *arrays)


IN_RANGE = {"fast": "its word that indices are in range"}  # values of `mode`


@pytest.mark.parametrize("name", operators())
def test_unlike_sizes_are_refused_or_do_no_harm(name):
    """Each size of its own, one of them smaller by one in each run: refused when made, or where it is called, or in range."""
    for case in kinds_of_cases(operators()[name]):
        if case.attributes.get("mode") in IN_RANGE:
            continue
        try:
            unlike = Unlike(operators()[name], case)
        except TensorExpressionError:
            continue  # sizes are to be known, or known to be equal
        for smaller in range(len(unlike.sizes) if 0 not in unlike.sizes else 0):
            try:
                unlike.run([s - (n == smaller) for n, s in enumerate(unlike.sizes)])
            except RunError as refused:
                assert str(refused).startswith(("argument", "assertion failed: `")), f"{case!r}: {refused}"


@pytest.mark.parametrize("name", operators())
def test_integers_out_of_range_are_not_read_at(name):
    """Data of integers: both ends of the type, and numbers just beside the axes."""
    rng = np.random.default_rng(0)
    for case in kinds_of_cases(operators()[name]):
        if case.attributes.get("mode") in IN_RANGE or not any(a.dtype.is_int for a in case.arguments()):
            continue
        judged = Judged(operators()[name], case)
        arrays = []
        for tensor, array in zip(judged.call.inputs, judged.call.arrays.values()):
            if tensor.dtype.is_int and not tensor.dtype.is_bool:
                low, high = tensor.dtype.min_value, tensor.dtype.max_value
                array = rng.choice(
                    np.array([low, max(low, -100), max(low, -1), 0, 3, 100, high], array.dtype), array.shape
                )
            arrays.append(np.array(array))
        results = [np.zeros(e.shape, numbers.storage_dtype(t.dtype)) for t, e in zip(judged.outputs, judged.expected)]
        try:
            with np.errstate(all="ignore"):
                run(judged.func, *arrays, *results)
        except RunError as undefined:
            assert "division by zero" in str(undefined) or "shift by" in str(undefined), f"{case!r}: {undefined}"


def with_shapes(case: Case, shapes: list[tuple[int, ...]]) -> Case:
    left = iter(shapes)
    return case.mapped(lambda a: Argument(next(left), a.dtype, "any"))


def lesser(case: Case) -> Iterator[Case]:
    """The case with all tensors of 0 dimensions or one; with one of them so; and with one extent of 0."""
    shapes = [tuple(3 if isinstance(s, str) else s for s in a.shape) for a in case.arguments()]
    for least in ((), (0,), (1,)):
        yield with_shapes(case, [least] * len(shapes))
    for n, shape in enumerate(shapes):
        others = [shape[:-1], *((*shape[:d], 0, *shape[d + 1 :]) for d in range(len(shape)))]
        yield from (with_shapes(case, [*shapes[:n], other, *shapes[n + 1 :]]) for other in others)


@pytest.mark.parametrize("name", operators())
def test_fewer_dimensions_and_no_elements_are_refused_or_right(name):
    operator = operators()[name]
    for case in lesser(operator.cases[0]):
        call = concrete(case)
        args, attributes = call.symbolic()
        try:
            made = operator.function(*args, **attributes)
        except TensorExpressionError:
            continue
        func = te.create_prim_func([*call.inputs, *(made if isinstance(made, (list, tuple)) else [made])])
        buffers = func.buffers()[len(call.inputs) :]
        outputs = [np.zeros([int(s.value) for s in b.shape], numbers.storage_dtype(b.dtype)) for b in buffers]
        try:
            run(func, *call.arrays.values(), *outputs)
        except RunError as undefined:
            assert "division by zero" in str(undefined) or "shift by" in str(undefined), f"{case!r}: {undefined}"


@pytest.mark.parametrize("name", operators())
def test_parameters_of_other_types_are_refused(name):
    """A word is no bool, an object nothing; what is wrong of a parameter is said as an error about the call."""
    operator = operators()[name]
    args, attributes = concrete(operator.cases[0]).symbolic()
    given = operator.signature.bind(*args, **attributes)
    given.apply_defaults()
    for parameter in operator.signature.parameters.values():
        if parameter.kind is not parameter.VAR_POSITIONAL:
            for other in ("desc", object(), None, 1.5, -7, ()):
                call = inspect.BoundArguments(operator.signature, {**given.arguments, parameter.name: other})
                is_wrong = parameter.annotation in ("bool", "int", "Tensor", "te.Tensor") and other in ("desc", 1.5, ())
                try:
                    operator.function(*call.args, **call.kwargs)
                except TensorExpressionError:
                    continue
                assert not is_wrong, f"{parameter} took {other!r}"


K, K2, n, m = (te.var(name) for name in ("K", "K2", "n", "m"))
A, B = te.placeholder((2, K), name="A"), te.placeholder((K2, 4), name="B")


@pytest.mark.parametrize("engine", ["interpreter", "llvm"])
@pytest.mark.parametrize("way", ["function", "stages", "cache_write", "gradient"])
def test_a_call_says_which_sizes_differ(engine, way):
    """Also of stages, and of a derivative, which has not the operation that noted what it needs."""
    product = tir.topi.matmul(A, B)
    out, args = np.zeros((2, 4), "float32"), [A, B, product]
    if way == "gradient":
        head = te.placeholder((2, 4), name="head")
        args = [A, B, head, te.gradient(product, [A], head)[0]]
        out = np.zeros((2, 3), "float32")
    if way in ("function", "gradient"):
        built = tir.build(te.create_prim_func(args), engine)
    else:
        schedule = te.create_schedule(product.op)
        if way == "cache_write":
            schedule.cache_write(product, "local")
        built = tir.build(schedule, args, engine)
    between = [np.ones((2, 4), "float32")] * (way == "gradient")
    built(np.ones((2, 3), "float32"), np.ones((3, 4), "float32"), *between, out)
    assert (out == (4 if between else 3)).all()
    with pytest.raises(RunError, match="argument 2 `B` of main: size 0 is 1, but `K` is 3"):
        built(np.ones((2, 3), "float32"), np.ones((1, 4), "float32"), *between, out)


@pytest.mark.parametrize("engine", ["interpreter", "llvm"])
def test_what_no_variable_is_solved_from_is_asserted(engine):
    x = te.placeholder((n, m), name="x")
    built = tir.build(te.create_prim_func([x, tir.topi.reshape(x, (4, -1))]), engine)
    built(np.ones((2, 6), "float32"), np.ones((4, 3), "float32"))
    with pytest.raises(RunError, match=r"`reshape` needs n \* m % 4 == 0"):
        built(np.ones((2, 5), "float32"), np.ones((4, 2), "float32"))


def test_parameters_are_asserted_to_be_equal():
    """A scalar of the user's stays a parameter, with its own value."""
    func = te.create_prim_func([K, K2, A, B, tir.topi.matmul(A, B)])
    a, b, out = (np.ones(s, "float32") for s in ((2, 3), (1, 4), (2, 4)))
    with pytest.raises(RunError, match="`matmul` needs K == K2"):
        run(func, 3, 1, a, b, out)


def test_sizes_that_cannot_be_equal_are_refused():
    x = te.placeholder((K,), name="x")
    both = [tir.topi.reshape(x, (3, 1)), tir.topi.reshape(x, (4, 1))]
    with pytest.raises(TensorExpressionError, match="`reshape` needs K == 4, which other sizes"):
        te.create_prim_func([x, *both])


def test_sizes_of_other_types_are_put_in_each_others_place():
    wide = te.placeholder((te.var("w", "int64"), 4), name="W")
    built = tir.build(te.create_prim_func([A, wide, tir.topi.matmul(A, wide)]))
    with pytest.raises(RunError, match=r"expected shape \(3, 4\)|size 0 is 1"):
        built(np.ones((2, 3), "float32"), np.ones((1, 4), "float32"), np.ones((2, 4), "float32"))


def test_what_data_say_is_kept_in_range():
    """Lengths end with the row; an index reads the nearest element; an update out of range is left out."""
    x, at = te.placeholder((2, 3), name="x"), te.placeholder((2,), "int32", name="at")
    data, out = np.array([[1, 2, 3], [4, 5, 6]], "float32"), np.zeros((2, 3), "float32")

    def result(made: te.Tensor, *values: Any) -> Any:
        tir.build(te.create_prim_func([x, at, made]))(data, np.array(values, "int32"), out)
        return out.tolist()

    assert result(tir.topi.reverse_sequence(x, at, 1, 0), 9, -4) == [[3, 2, 1], [4, 5, 6]]
    assert result(tir.topi.nn.embedding(at, x), 9, -4) == [[4, 5, 6], [1, 2, 3]]
    updates = te.compute((2, 3), lambda i, j: te.const(7.0) + j, name="updates")
    assert result(tir.topi.index_put(x, [at], updates), 5, -1) == [[1, 2, 3], [7, 8, 9]]
