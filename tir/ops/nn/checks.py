"""What operators on neural networks ask of their arguments, and the errors where they are not so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...te import Tensor, equate, equate_shapes, error
from ..element_places import integer


def require_tensor(value: Any, what: str, *ranks: int) -> Tensor:
    """``value``, a tensor of one of ``ranks`` dimensions (any, where none is named). Raises ``TensorExpressionError``."""
    if not isinstance(value, Tensor):
        raise error(f"{what} is a tensor, not {value!r}", "te.placeholder(shape), or what an operator gives")
    if ranks and value.ndim not in ranks:
        legal = " or ".join(map(str, ranks))
        raise error(f"{what} has {legal} dimensions, but `{value.name}` has {value.ndim}: {value.shape}")
    return value


def require_float(value: Any, what: str) -> Tensor:
    """``value``, a tensor of a floating type. Raises ``TensorExpressionError``."""
    tensor = require_tensor(value, what)
    if not tensor.dtype.is_float:
        raise error(f"{what} is of a floating type, but `{tensor.name}` is {tensor.dtype}", "cast it first")
    return tensor


def require_vector(value: Any, extent: Any, what: str) -> Tensor:
    """``value``, a tensor of one dimension of ``extent`` elements. Raises ``TensorExpressionError``."""
    made = require_tensor(value, what, 1)
    require_extent(made.shape[0], extent, f"{what}, `{made.name}` of shape {made.shape},")
    return made


def require_shape(value: Any, shape: Sequence[Any], what: str) -> Tensor:
    """``value``, a tensor of ``shape``. Raises ``TensorExpressionError``."""
    made = require_tensor(value, what)
    if not equate_shapes(made.shape, shape):
        raise error(f"{what} has shape {tuple(shape)}, but `{made.name}` has {made.shape}")
    return made


def require_extent(extent: Any, expected: Any, what: str) -> None:
    """Raise ``TensorExpressionError`` where ``extent`` is known not to be ``expected``."""
    if not equate(extent, expected):
        raise error(f"{what} has {extent!r} elements where there are {expected!r}")


def numbers(value: Any, count: int, what: str, least: int = 0) -> tuple[int, ...]:
    """``value`` for each of ``count`` dimensions: one integer for all, or one each, at least ``least``.

    Raises ``TensorExpressionError`` for another number of them, and for smaller ones.
    """
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    made = tuple(integer(v, what) for v in (given * count if len(given) == 1 else given))
    if len(made) != count:
        raise error(f"{what} is {value!r}", f"one integer, or {count}, one a dimension")
    if min(made) < least:
        raise error(f"{what} is {value!r}", f"at least {least} in each dimension")
    return made
