"""Sums of products over named axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import Expr, cast, const
from ..te import Tensor, compute, equate, error, reduce_axis
from .element_places import is_one, listed
from .products import ProductType, product_type
from .registry import arg, case, operator
from .shapes import axis_of

Labels = tuple[str, ...]  # letters; "0", "1" … are the axes that an ellipsis stands for, from the last


def _numpy_einsum(subscripts: str, *operands: Any, out_dtype: Any = None) -> Any:
    return np.einsum(subscripts, *operands, dtype=out_dtype, casting="unsafe")


@operator(
    gives=(3, 5), unstated="which axes meet is for the subscripts to say", section="linear algebra", reference=_numpy_einsum,
    cases=[
        case("ij,jk->ik", arg((3, 4)), arg((4, 5))), case("ij,jk", arg((3, 4), "int32"), arg((4, 5), "int32")),
        case("ii->i", arg((3, 3), "int8")), case("ii", arg((3, 3))), case("ij->ji", arg((3, 4), "bfloat16")),
        case("ba", arg((3, 4))), case("i,i->", arg((5,)), arg((5,))), case("i,j->ij", arg((3,)), arg((2,), "float64")),
        case("b i j , b j k -> b i k", arg((2, 3, 4)), arg((2, 4, 2))),
        case("...ij,...jk->...ik", arg((2, 1, 3, 4)), arg((5, 4, 2))), case("...i->...", arg((2, 3, 4))),
        case("i...,...->i...", arg((2, 3)), arg(())), case("ij,jk,kl->il", arg((2, 3)), arg((3, 4)), arg((4, 2))),
        case("ij,j,k->k", arg((2, 3)), arg((3,)), arg((4,))), case("ij,jk->ik", arg((3, 0)), arg((0, 2))),
        case("ij,jk->ik", arg(("n", "m")), arg(("m", 2))),
        case("ij,ij->i", arg((2, 3), "int8"), arg((2, 3), "int8"), out_dtype="int32"),
    ],
)  # fmt: skip
def einsum(subscripts: str, *operands: Tensor, out_dtype: Any = None) -> Tensor:
    """Einstein's summation in NumPy's notation: ``einsum("ij,jk->ik", a, b)`` sums products over ``j``.

    A letter names an axis of each operand that has it; without ``->``, the result has the letters that occur once, in
    alphabetical order; an ellipsis stands for axes that broadcast. More than two operands are contracted from the left.
    Elements are converted to ``out_dtype``, or to their common type (narrow floats to ``float32``, and the sum back), before
    they are multiplied.

    Raises ``TensorExpressionError`` for subscripts that are none of the operands', and for extents that differ.
    """
    inputs, output = _parsed(subscripts, operands)
    extents = _extents(inputs, operands)
    types = product_type(out_dtype, *operands)
    made, labels = operands[0], inputs[0]
    if len(operands) == 1:
        return _contracted([(made, labels)], output, extents, types)
    for n in range(1, len(operands)):
        later = {name for names in inputs[n + 1 :] for name in names} | set(output)
        kept = tuple(dict.fromkeys(name for name in (*labels, *inputs[n]) if name in later))
        target, kind = (output, types) if n == len(operands) - 1 else (kept, types.unrounded)
        made, labels = _contracted([(made, labels), (operands[n], inputs[n])], target, extents, kind), target
    return made


def _contracted(
    operands: Sequence[tuple[Tensor, Labels]], output: Labels, extents: Mapping[str, Expr], types: ProductType
) -> Tensor:
    """The sum over the labels that are not in the output."""
    summed = dict.fromkeys(name for _, names in operands for name in names if name not in output)
    axes = {name: reduce_axis((0, extents[name]), _axis_name(name)) for name in summed}
    inner = types.inner if axes or len(operands) > 1 else types.result

    def element(*indices: Any) -> Expr:
        at = {**dict(zip(output, indices)), **axes}
        value: Expr | None = None
        for t, names in operands:
            places = [0 if is_one(s) and not is_one(extents[n]) else at[n] for n, s in zip(names, t.shape)]
            factor = cast(inner, t(*places))
            value = factor if value is None else value * factor
        assert value is not None
        return types.sum(value, axis=list(axes.values())) if axes else cast(types.result, value)

    return compute([extents[n] for n in output], element, name="einsum")


def _axis_name(label: str) -> str:
    return label if label.isalpha() else f"axis{label}"


def _parsed(subscripts: Any, operands: Sequence[Tensor]) -> tuple[list[Labels], Labels]:
    """The labels of the axes of each operand, and of the result."""
    text = subscripts.replace(" ", "") if isinstance(subscripts, str) else ""
    term = r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*"
    if not operands or not re.fullmatch(rf"{term}(,{term})*(->{term})?", text):
        raise error(f"{subscripts!r} are no subscripts of einsum", '"ij,jk->ik", "...i->..."')
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise error(f"{subscripts!r} is of {len(terms)} tensors, and there are {len(operands)}")
    inputs = [_labels(term, t.ndim) for term, t in zip(terms, operands)]
    hidden = sorted({n for names in inputs for n in names if n.isdigit()}, key=int, reverse=True)
    every = [n for names in inputs for n in names]
    if not arrow:
        return inputs, (*hidden, *sorted(n for n in set(every) if n.isalpha() and every.count(n) == 1))
    before, dots, after = right.partition("...")
    if hidden and not dots:
        raise error(f"the result of {subscripts!r} has no ellipsis for the axes of one", f"{left}->...{right}")
    output = (*before, *(hidden if dots else ()), *after)
    unknown = [n for n in output if n not in every]
    if unknown or len(set(output)) < len(output):
        raise error(f"the result of {subscripts!r} has a label that no tensor has, or one twice", "each label once")
    return inputs, output


def _labels(term: str, ndim: int) -> Labels:
    before, dots, after = term.partition("...")
    count = ndim - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise error(f"`{term}` does not name the axes of a tensor of {ndim} dimensions", "one letter an axis")
    return (*before, *(str(n) for n in reversed(range(count))), *after)


def _extents(inputs: Sequence[Labels], operands: Sequence[Tensor]) -> dict[str, Expr]:
    """The extent of each label; 1 goes with any other."""
    found: dict[str, Expr] = {}
    for names, t in zip(inputs, operands):
        for name, extent in zip(names, t.shape):
            known = found.get(name, const(1))
            if not is_one(known) and not is_one(extent) and not equate(known, extent):
                what = f"axis `{name}`" if name.isalpha() else "an axis of the ellipsis"
                raise error(f"{what} has the extents {known} and {extent}", "equal extents, or 1")
            found[name] = extent if is_one(known) else known
    return found


@operator(
    gives=(2, 2), unstated="which axes meet is for `axes` to say", section="linear algebra",
    reference=lambda a, b, axes=2, out_dtype=None: np.tensordot(a, b, axes),
    cases=[
        case(arg((2, 3, 4)), arg((3, 4, 2))), case(arg((2, 3)), arg((3, 2)), 1),
        case(arg((2, 3), "int8"), arg((4,), "int8"), 0), case(arg((2, 3, 4)), arg((4, 3)), ((1, -1), (1, 0))),
        case(arg((2, 3)), arg((3, 5)), (1, 0)), case(arg(("n", 3)), arg((3, "n")), axes=1),
    ],
)  # fmt: skip
def tensordot(a: Tensor, b: Tensor, axes: Any = 2, out_dtype: Any = None) -> Tensor:
    """The sum of products over ``axes`` of ``a`` and of ``b``: the last ``axes`` of one and the first of the other, or two
    lists of as many axes.
    """
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise error(f"{axes!r} are not the axes of both tensors", "a number, or two lists of axes")
        ours, theirs = [[axis_of(n, t.ndim) for n in listed(group)] for t, group in zip((a, b), axes)]
    else:
        ours, theirs = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    if len(ours) != len(theirs) or len(ours) > min(a.ndim, b.ndim):
        raise error(f"{axes!r} are not axes of {a.shape} and as many of {b.shape}")
    for n, m in zip(ours, theirs):
        if not equate(a.shape[n], b.shape[m]):
            raise error(f"axis {n} of {a.shape} and axis {m} of {b.shape} differ", "equal extents")
    summed = dict(zip(ours, theirs))
    first = tuple(f"s{n}" if n in summed else f"a{n}" for n in range(a.ndim))
    second = tuple(f"s{ours[theirs.index(m)]}" if m in theirs else f"b{m}" for m in range(b.ndim))
    output = tuple(n for n in (*first, *second) if n[0] != "s")
    types = product_type(out_dtype, a, b)
    return _contracted(
        [(a, first), (b, second)], output, {**dict(zip(second, b.shape)), **dict(zip(first, a.shape))}, types
    )
