"""Losses: how far predictions are from targets."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ... import Expr, te
from ...te import Tensor
from ..element_places import as_index, clamped
from ..promotion import wide
from ._operator import arg, case, nn_operator
from .softmaxes import log_softmax


def _nll_reference(
    predictions: Any, targets: Any, weights: Any = None, reduction: str = "mean", ignore_index: int = -100
) -> np.ndarray:
    rows = np.moveaxis(predictions, 1, -1)
    losses, factors = np.zeros(targets.shape), np.zeros(targets.shape)
    for at in np.ndindex(*targets.shape):
        if targets[at] != ignore_index:
            factors[at] = 1 if weights is None else weights[targets[at]]
            losses[at] = -rows[at][targets[at]] * factors[at]
    if reduction == "none":
        return losses
    return losses.sum() / factors.sum() if reduction == "mean" else losses.sum()


def _cases(values: str = "any") -> Any:
    targets = arg((4,), "int32", [2, 0, 1, 1])
    return (
        case(arg((4, 3), "float32", values), targets),
        case(arg((4, 3), "float32", values), targets, arg((3,), "float32", "positive")),
        case(arg((4, 3), "float32", values), targets, arg((3,), "float32", "positive"), "none", 1),
        case(arg((2, 3, 5), "float64", values), arg((2, 5), "int64", "indices below 3"), None, "sum"),
        case(arg((4, 3), "float16", values), targets, None, "mean", 0),
        case(arg((2, 3, 2, 2), "float32", values), arg((2, 2, 2), "int32", "indices below 3"), reduction="mean"),
    )


@nn_operator(
    gives=(),
    shapes="(n, c, …) float, (n, …) integer, (c) -> (…r)",
    reference=_nll_reference,
    cases=_cases(),
    tolerance=64,
)
def nll_loss(
    predictions: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    reduction: Literal["none", "sum", "mean"] = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """``-weights[t] * predictions[n, t, …]`` for each target ``t`` at ``[n, …]``: the negative log-likelihood.

    ``predictions`` is ``(N, C, …)``, logarithms of probabilities; ``targets`` ``(N, …)``, integers from 0 to C - 1;
    ``weights`` ``(C,)``, or None for 1. ``reduction`` is ``"none"``, ``"sum"``, or ``"mean"``: the sum of the losses by that
    of their weights. A target of ``ignore_index`` counts in neither. Raises ``TensorExpressionError`` where shapes do not
    agree, and for another ``reduction``. Any other target that is out of range counts as the nearest.
    """
    x, t, factors = predictions, targets, weights
    inner = wide(x.dtype)

    def counted(indices: Any, value: Expr) -> Expr:
        return te.if_then_else(t(*indices) != te.const(ignore_index, t.dtype), value, te.const(0, inner))

    def target(indices: Any) -> Expr:
        return clamped(as_index(t(*indices)), x.shape[1])

    def weight(indices: Any) -> Expr:
        return te.const(1, inner) if factors is None else factors(target(indices)).astype(inner)

    def loss(*i: Any) -> Expr:
        value = -x(i[0], target(i), *i[1:]).astype(inner)
        return counted(i, value if factors is None else value * weight(i))

    if reduction == "none":
        return te.compute(t.shape, lambda *i: loss(*i).astype(x.dtype), name="nll_loss")
    axes = [te.reduce_axis((0, n), f"k{d}") for d, n in enumerate(t.shape)]
    if reduction == "sum":
        total = te.compute((), lambda: te.sum(loss(*axes), axis=axes), name="nll_loss_sum")
        return te.compute((), lambda: total[()].astype(x.dtype), name="nll_loss")
    sums = te.compute(
        (),
        lambda: (te.sum(loss(*axes), axis=axes), te.sum(counted(axes, weight(axes)), axis=axes)),
        name="nll_loss_sums",
    )
    return te.compute((), lambda: (sums[0][()] / sums[1][()]).astype(x.dtype), name="nll_loss")


def _cross_entropy_reference(x: Any, targets: Any, *others: Any, **attributes: Any) -> np.ndarray:
    logarithms = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    return _nll_reference(logarithms, targets, *others, **attributes)


@nn_operator(
    gives=(), shapes="(n, c, …) float, (n, …) integer, (c) -> (…r)", reference=_cross_entropy_reference, cases=_cases(),
    tolerance=64, aliases=("softmax_cross_entropy_loss",),
)  # fmt: skip
def cross_entropy(
    predictions: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    reduction: Literal["none", "sum", "mean"] = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """:func:`nll_loss` of the logarithm of the softmax of ``predictions`` over axis 1, which are no probabilities yet."""
    return nll_loss(log_softmax(predictions, 1), targets, weights, reduction, ignore_index)
