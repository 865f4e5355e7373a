"""Activations: one input element, one output element.

Types of 16 bits and less are computed in float32 and rounded once. NaN stays NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ... import Expr, Select, const, te
from ...te import Tensor, equate, error
from ..element_places import constant
from ..promotion import wide
from ..shapes import axis_of
from ._operator import arg, case, nn_operator

_SPECIAL = arg((9,), "float32", values=[0.0, -0.0, 1.0, -1.0, 3.5, -30.0, math.inf, -math.inf, math.nan])
_CASES = (case(arg((3, 1, 5), "float32")), case(_SPECIAL), case(arg((2, 0), "float64")), case(arg((7,), "float16")))


def _pointwise(data: Tensor, name: str, formula: Callable[[Any], Expr]) -> Tensor:
    """``formula`` of each element of a tensor of a floating type."""
    inner = wide(data.dtype)

    def element(*i: Any) -> Expr:
        return formula(data(*i).astype(inner)).astype(data.dtype)

    return te.compute(data.shape, element, name=name)


def _limits(data: Tensor, name: str, low: Any, high: Any) -> Tensor:
    """``data`` of any number type, between ``low`` and ``high`` (None: no limit)."""

    def element(*i: Any) -> Expr:
        value = data(*i)
        value = value if low is None else te.max(value, const(low, data.dtype))
        return value if high is None else te.min(value, const(high, data.dtype))

    return te.compute(data.shape, element, name=name)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0.0)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -x))


@nn_operator(
    shapes="(…) -> (…)",
    reference=lambda x: np.where(np.isnan(x), x, np.where(x > 0, x, 0)),
    cases=(*_CASES, case(arg((4, 3), "int8")), case(arg((3,), "uint8"))),
)
def relu(x: Tensor) -> Tensor:
    """``max(x, 0)``, of any number type."""
    return _limits(x, "relu", 0, None)


@nn_operator(
    shapes="(…) -> (…)",
    reference=lambda x: np.where(np.isnan(x), x, np.where(x > 6, 6, np.where(x > 0, x, 0))),
    cases=(*_CASES, case(arg((9,), "int32"))),
)
def relu6(x: Tensor) -> Tensor:
    """``min(max(x, 0), 6)``, of any number type."""
    return _limits(x, "relu6", 0, 6)


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, low=-1.0, high=1.0: np.where(x < low, low, np.where(x > high, high, x)),
    aliases=("hardtanh",),
    cases=(*_CASES, case(arg((6,), "float32"), low=-0.5, high=0.25)),
)
def hard_tanh(x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    """``x`` between ``low`` and ``high``."""
    return _limits(x, "hard_tanh", low, high)


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, alpha=0.01: np.where(x > 0, x, alpha * x),
    cases=(*_CASES, case(arg((5,), "float32"), alpha=0.3)),
)
def leaky_relu(t: Tensor, alpha: float = 0.01) -> Tensor:
    """``t`` where it is positive, else ``alpha * t``."""
    return _pointwise(t, "leaky_relu", lambda v: te.if_then_else(v > 0.0, v, v * alpha))


def _prelu_reference(x: np.ndarray, slope: np.ndarray, axis: int = 1) -> np.ndarray:
    rows = np.moveaxis(x, axis, -1)
    return np.moveaxis(np.where(rows > 0, rows, slope * rows), -1, axis)


@nn_operator(
    shapes="(…) float, (_) -> (…)",
    reference=_prelu_reference,
    cases=(
        case(arg((2, 3, 4), "float32"), arg((3,), "float32")),
        case(arg((2, 3, 4), "float32"), arg((4,), "float32"), axis=-1),
        case(arg((2, 3), "float16"), arg((1,), "float16")),
    ),
)
def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """``x`` where it is positive, else ``slope * x``; ``slope`` has one element, or one for each index of ``axis``.

    Raises ``TensorExpressionError`` for a ``slope`` of another length.
    """
    channel, inner = axis_of(axis, x.ndim), wide(x.dtype)
    is_shared = constant(slope.shape[0]) == 1
    if not is_shared and not equate(slope.shape[0], x.shape[channel]):
        raise error(f"there are {slope.shape[0]} slopes for {x.shape[channel]} channels", "one, or one for each")

    def element(*i: Any) -> Expr:
        value = x(*i).astype(inner)
        factor = slope[0 if is_shared else i[channel]].astype(inner)
        return te.if_then_else(value > 0.0, value, value * factor).astype(x.dtype)

    return te.compute(x.shape, element, name="prelu")


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    cases=(*_CASES, case(arg((5,), "float32"), alpha=0.3)),
)
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    return _pointwise(x, "elu", lambda v: te.if_then_else(v > 0.0, v, te.expm1(v) * alpha))


_SELU_ALPHA, _SELU_GAMMA = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, alpha=_SELU_ALPHA, gamma=_SELU_GAMMA: (
        gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))
    ),
    cases=(*_CASES, case(arg((5,), "float32"), alpha=2.0, gamma=0.5)),
)
def selu(x: Tensor, alpha: float = _SELU_ALPHA, gamma: float = _SELU_GAMMA) -> Tensor:
    """``gamma * elu(x, alpha)``; the constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017)."""
    return _pointwise(x, "selu", lambda v: te.if_then_else(v > 0.0, v, te.expm1(v) * alpha) * gamma)


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0),
    cases=(*_CASES, case(arg((5,), "float32"), alpha=0.3)),
)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``."""
    return _pointwise(x, "celu", lambda v: te.if_then_else(v > 0.0, v, te.expm1(v / alpha) * alpha))


def _gelu_reference(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))) / 2


@nn_operator(
    shapes="(…) float -> (…)",
    reference=_gelu_reference,
    cases=(*_CASES, case(arg((3, 5), "float32"), approximate="tanh")),
)
def gelu(x: Tensor, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """``x * Phi(x)``, with the distribution function ``Phi`` of the standard normal distribution.

    ``approximate="tanh"`` takes the approximation of Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    Raises ``TensorExpressionError`` for another word.
    """

    def exact(v: Any) -> Expr:
        return v * (te.erf(v * math.sqrt(0.5)) + 1.0) * 0.5

    def by_tanh(v: Any) -> Expr:
        return v * (te.tanh((v + v * v * v * 0.044715) * math.sqrt(2 / math.pi)) + 1.0) * 0.5

    return _pointwise(x, "gelu", exact if approximate == "none" else by_tanh)


@nn_operator(shapes="(…) float -> (…)", reference=lambda x: _gelu_reference(x, "tanh"), cases=_CASES)
def gelu_tanh(x: Tensor) -> Tensor:
    """``gelu(x, approximate="tanh")``."""
    return gelu(x, "tanh")


@nn_operator(shapes="(…) float -> (…)", reference=lambda x: x * _sigmoid(x), aliases=("swish",), cases=_CASES)
def silu(x: Tensor) -> Tensor:
    """``x * sigmoid(x)``, also known as swish."""
    return _pointwise(x, "silu", lambda v: v * te.sigmoid(v))


@nn_operator(shapes="(…) float -> (…)", reference=lambda x: x * np.tanh(_softplus(x)), cases=_CASES)
def mish(x: Tensor) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return _pointwise(x, "mish", lambda v: v * te.tanh(_stable_softplus(v)))


def _stable_softplus(v: Any) -> Expr:
    """``log(1 + exp(v))`` without overflow."""
    return te.max(v, 0.0) + te.log1p(te.exp(-te.abs(v)))


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, beta=1.0, threshold=np.inf: np.where(beta * x > threshold, x, _softplus(beta * x) / beta),
    cases=(*_CASES, case(arg((5,), "float32"), beta=2.5), case(arg((7,), "float32"), beta=2.0, threshold=0.5)),
)
def softplus(x: Tensor, beta: float = 1.0, threshold: float | None = None) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, computed without overflow; ``x`` where ``beta * x`` is above a ``threshold``."""

    def value(v: Any) -> Expr:
        made = _stable_softplus(v) if beta == 1.0 else _stable_softplus(v * beta) / beta
        return made if threshold is None else Select(v * beta > threshold, v, made)

    return _pointwise(x, "softplus", value)


@nn_operator(
    shapes="(…) float -> (…)", reference=lambda x: -np.logaddexp(0.0, -x), aliases=("logsigmoid",), cases=_CASES
)
def log_sigmoid(x: Tensor) -> Tensor:
    """``log(sigmoid(x))``, computed without overflow."""
    return _pointwise(x, "log_sigmoid", lambda v: -_stable_softplus(-v))


@nn_operator(shapes="(…) float -> (…)", reference=lambda x: x / (1 + np.abs(x)), cases=_CASES)
def softsign(x: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return _pointwise(x, "softsign", lambda v: v / (te.abs(v) + 1.0))


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1),
    cases=(*_CASES, case(arg((5,), "float32"), alpha=1 / 6)),
)
def hard_sigmoid(x: Tensor, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """``alpha * x + beta`` between 0 and 1, with the constants of ONNX (others take ``alpha = 1/6``)."""
    return _pointwise(x, "hard_sigmoid", lambda v: te.min(te.max(v * alpha + beta, 0.0), 1.0))


@nn_operator(
    shapes="(…) float -> (…)", reference=lambda x: x * np.clip(x / 6 + 0.5, 0, 1), aliases=("hardswish",), cases=_CASES
)
def hard_swish(x: Tensor) -> Tensor:
    """``x * hard_sigmoid(x, 1/6, 1/2)``."""
    return _pointwise(x, "hard_swish", lambda v: v * te.min(te.max(v * (1 / 6) + 0.5, 0.0), 1.0))


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, threshold=1.0, value=0.0: np.where(x <= threshold, value, x),
    cases=(*_CASES, case(arg((5,), "float32"), threshold=0.1, value=-2.0)),
)
def thresholded_relu(x: Tensor, threshold: float = 1.0, value: float = 0.0) -> Tensor:
    """``x`` where it is above ``threshold``, else ``value``."""
    return _pointwise(x, "thresholded_relu", lambda v: te.if_then_else(v <= threshold, te.const(value, v.dtype), v))


@nn_operator(
    shapes="(…) float -> (…)",
    reference=lambda x, lambd=0.5, bias=0.0: np.select([x < -lambd, x > lambd], [x + bias, x - bias], 0.0),
    cases=(*_CASES, case(arg((8,), "float32"), lambd=0.2, bias=0.2)),
)
def shrink(x: Tensor, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """``x`` nearer to 0 by ``bias`` where it is further than ``lambd`` from 0, else 0.

    ``bias=0`` is the hard shrinkage, ``bias=lambd`` the soft one.
    """

    def element(v: Any) -> Expr:
        return te.if_then_else(v < -lambd, v + bias, te.if_then_else(v > lambd, v - bias, te.const(0, v.dtype)))

    return _pointwise(x, "shrink", element)
