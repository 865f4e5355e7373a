"""Attention: weighted means of values, with the softmax of products of queries and keys as weights; and rotary positions.

All is computed in float32 for types of 16 bits and less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import Expr, all_of, const, te
from ...te import Tensor, at_most, equate_shapes, error
from ..element_places import constant, integer
from ..indexing import from_front
from ..promotion import result_type, wide
from ..reduction import maximum_reducer
from ..registry import complete
from ..shapes import broadcast, read_index
from ._operator import arg, case, nn_operator
from .checks import require_extent, require_float, require_shape, require_tensor
from .matrix_products import dense
from .softmaxes import weight_of


def _attention_reference(
    query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: Any, softcap: float, past: int
) -> np.ndarray:
    repeats = query.shape[-3] // key.shape[-3]
    key, value = (np.repeat(x, repeats, axis=-3) for x in (key, value))
    shape = (*query.shape[:-1], key.shape[-2])
    allowed, added = np.ones(shape, bool), np.zeros(shape)
    if mask is not None:
        allowed, added = (allowed & mask, added) if mask.dtype == bool else (allowed, added + mask)
    made = np.zeros((*query.shape[:-1], value.shape[-1]))
    for at in np.ndindex(*query.shape[:-1]):
        head, row = at[:-1], at[-1]
        products = key[head] @ query[at] * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        products = softcap * np.tanh(products / softcap) if softcap else products
        products = products + added[at]
        kept = allowed[at] & ~np.isneginf(products)
        kept = kept & (np.arange(len(kept)) <= row + past) if is_causal else kept
        if kept.any():
            powers = np.exp(products[kept] - products[kept].max())
            made[at] = powers / powers.sum() @ value[head][kept]
    return made


@nn_operator(
    shapes="(…, h, l, e), (…, g, s, e), (…, g, s, v) -> (…, h, l, v)",
    reference=complete(_attention_reference),
    tolerance=128,
    cases=(
        case(arg((1, 2, 3, 4)), arg((1, 2, 5, 4)), arg((1, 2, 5, 3))),
        case(arg((1, 4, 2, 3)), arg((1, 2, 5, 3)), arg((1, 2, 5, 3)), is_causal=True, past=3),
        case(arg((1, 2, 3, 4)), arg((1, 1, 5, 4)), arg((1, 1, 5, 4)), arg((3, 5), "bool"), scale=0.7),
        case(arg((2, 2, 3, 4)), arg((2, 2, 5, 4)), arg((2, 2, 5, 4)), arg((2, 1, 1, 5)), softcap=2.0),
        case(
            arg((1, 1, 2, 2)), arg((1, 1, 2, 2)), arg((1, 1, 2, 2)), arg((2, 2), "bool", [[False] * 2, [True, False]])
        ),
        case(arg((1, 1, 1, 2)), arg((1, 1, 2, 2)), arg((1, 1, 2, 2)), arg((2,), "float32", [-math.inf, 0.5])),
        case(arg((3, 2, 4), "float16"), arg((3, 2, 4), "float16"), arg((3, 2, 4), "float16")),
        case(arg((1, "l", 2)), arg((1, "l", 2)), arg((1, "l", 2)), is_causal=True),
    ),
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Any = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float = 0.0,
    past: int = 0,
) -> Tensor:
    """``softmax(scale * query @ key.T + mask) @ value`` of each head.

    ``query`` is ``(…, H, L, E)``, ``key`` ``(…, G, S, E)``, ``value`` ``(…, G, S, V)``; the result ``(…, H, L, V)``. Where
    there are fewer heads of keys than of queries, each serves ``H / G`` of them in turn (grouped queries). ``scale`` is
    ``1 / sqrt(E)`` by default. ``mask`` broadcasts to ``(…, H, L, S)``: true for what is attended to, or a float that is
    added. ``is_causal``: row ``l`` attends to ``s <= l + past``, with ``past`` the number of keys before the first query.
    ``softcap`` is ``c`` in ``c * tanh(product / c)``, before the mask. A row that attends to nothing is 0.

    Raises ``TensorExpressionError`` where shapes do not agree, and for heads that are no multiple.
    """
    q, k, v = (require_float(x, f"the {what}") for x, what in ((query, "query"), (key, "key"), (value, "value")))
    group = _queries_of_a_key(q, k)
    dtype = result_type(x.dtype for x in (q, k, v))
    inner = wide(dtype)
    factor = 1 / math.sqrt(integer(q.shape[-1], "the length of a query")) if scale is None else scale

    def keys_at(place: Sequence[Any], row: Any, column: Any) -> tuple[Any, ...]:
        *before, head = place
        return (*before, head if group == 1 else head // group, row, column)

    e = te.reduce_axis((0, q.shape[-1]), "e")
    shape = (*q.shape[:-1], k.shape[-2])
    products = te.compute(
        shape,
        lambda *i: te.sum(q(*i[:-1], e).astype(inner) * k(*keys_at(i[:-2], i[-1], e)).astype(inner), axis=e),
        name="attention_products",
    )
    masked = _masked(products, factor, softcap, mask, past if is_causal else None)
    s = te.reduce_axis((0, k.shape[-2]), "s")
    largest = te.compute(shape[:-1], lambda *i: maximum_reducer(masked(*i, s), axis=s), name="attention_maximum")

    def power(*i: Any) -> Expr:
        most = largest(*i[:-1])
        nothing = te.const(-math.inf, inner)
        return weight_of(masked(*i) - te.if_then_else(most == nothing, te.const(0, inner), most))

    powers = te.compute(shape, power, name="attention_exp")
    s = te.reduce_axis((0, k.shape[-2]), "s")
    total = te.compute(shape[:-1], lambda *i: te.sum(powers(*i, s), axis=s), name="attention_sum")
    s2 = te.reduce_axis((0, k.shape[-2]), "s")
    weighted = te.compute(
        (*q.shape[:-1], v.shape[-1]),
        lambda *i: te.sum(powers(*i[:-1], s2) * v(*keys_at(i[:-2], s2, i[-1])).astype(inner), axis=s2),
        name="attention_values",
    )

    def element(*i: Any) -> Expr:
        by = total(*i[:-1])
        return (weighted(*i) / te.if_then_else(by == te.const(0, inner), te.const(1, inner), by)).astype(dtype)

    return te.compute(weighted.shape, element, name="attention")


def _queries_of_a_key(q: Tensor, k: Tensor) -> Any:
    """How many heads of queries there are for one of keys. Raises where they are no multiple."""
    heads, groups = (constant(x.shape[-3]) for x in (q, k))
    if heads == groups:
        return 1
    if not heads or not groups or heads % groups:
        raise error(f"{q.shape[-3]} heads of queries are no multiple of {k.shape[-3]} of keys")
    return heads // groups


def _masked(products: Tensor, factor: float, softcap: float, mask: Any, past: int | None) -> Tensor:
    """Products scaled, capped, and -inf where nothing is attended to."""
    shape, inner = products.shape, products.dtype
    nothing = te.const(-math.inf, inner)
    if mask is not None:
        _require_within(require_tensor(mask, "the mask"), shape)

    def element(*i: Any) -> Expr:
        value = products(*i) * te.const(factor, inner)
        value = te.tanh(value / softcap) * softcap if softcap else value
        conditions = [] if past is None else [i[-1] <= i[-2] + past]
        if mask is not None:
            own = mask(*read_index(mask.shape, shape, i))
            conditions += [own] if mask.dtype.is_bool else []
            value = value if mask.dtype.is_bool else value + own.astype(inner)
        return te.if_then_else(all_of(conditions), value, nothing) if conditions else value

    return te.compute(shape, element, name="attention_masked")


def _require_within(mask: Tensor, shape: Sequence[Any]) -> None:
    """Raise ``TensorExpressionError`` where a mask is larger than what it masks."""
    made = broadcast(mask.shape, tuple(shape))
    if not equate_shapes(made, shape):
        raise error(
            f"the mask `{mask.name}` has shape {mask.shape}, and the products of queries and keys {tuple(shape)}"
        )


# ---------------------------------------------------------------- with projections


def _heads_reference(x: Any, heads: int) -> np.ndarray:
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def _multi_head_reference(
    query: Any, key: Any, value: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, num_heads: int, mask: Any = None,
    is_causal: bool = False, b_q: Any = None, b_k: Any = None, b_v: Any = None, b_o: Any = None, num_key_heads: Any = None,
) -> np.ndarray:  # fmt: skip
    groups = num_key_heads or num_heads
    projected = [
        x @ w.T + (0 if b is None else b) for x, w, b in zip((query, key, value), (w_q, w_k, w_v), (b_q, b_k, b_v))
    ]
    q, k, v = (_heads_reference(x, n) for x, n in zip(projected, (num_heads, groups, groups)))
    made = _attention_reference(q, k, v, mask, is_causal, None, 0.0, 0)
    flat = made.transpose(0, 2, 1, 3).reshape(*query.shape[:2], -1)
    return flat @ w_o.T + (0 if b_o is None else b_o)


def _square(n: int, m: int | None = None) -> Any:
    return arg((m or n, n), "float32", "small")


@nn_operator(
    gives=(2, 3, 4),
    unstated="the masks and biases are tensors or None, and heads share weights as the call says",
    reference=_multi_head_reference,
    tolerance=2048,
    cases=(
        case(arg((2, 3, 4)), arg((2, 5, 4)), arg((2, 5, 4)), *[_square(4) for _ in range(4)], 2),
        case(
            arg((1, 3, 4)),
            arg((1, 3, 4)),
            arg((1, 3, 4)),
            _square(4, 8),
            _square(4),
            _square(4),
            _square(8, 4),
            4,
            is_causal=True,
            b_q=arg((8,)),
            b_o=arg((4,)),
            num_key_heads=2,
        ),
    ),
)
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    w_o: Tensor,
    num_heads: int,
    mask: Any = None,
    is_causal: bool = False,
    b_q: Any = None,
    b_k: Any = None,
    b_v: Any = None,
    b_o: Any = None,
    num_key_heads: int | None = None,
) -> Tensor:
    """Attention of ``num_heads`` parts of projected queries, keys and values, projected back.

    ``query`` is ``(B, L, D)``, ``key`` and ``value`` ``(B, S, …)``; weights and biases are those of :func:`dense`.
    ``num_key_heads``, by default as many, is for grouped queries; the rest is as in :func:`scaled_dot_product_attention`.
    Raises ``TensorExpressionError`` for projections that are not so many heads.
    """
    groups = num_heads if num_key_heads is None else num_key_heads
    q = _in_heads(dense(query, w_q, b_q), num_heads, "query")
    k, v = _in_heads(dense(key, w_k, b_k), groups, "key"), _in_heads(dense(value, w_v, b_v), groups, "value")
    made = scaled_dot_product_attention(q, k, v, mask, is_causal)
    size = made.shape[-1]
    flat = te.compute(
        (made.shape[0], made.shape[2], made.shape[1] * size),
        lambda b, s, d: made(b, d // size, s, d % size),
        name="attention_heads",
    )
    return dense(flat, w_o, b_o)


def _in_heads(x: Tensor, heads: int, what: str) -> Tensor:
    width = integer(require_tensor(x, f"the projected {what}", 3).shape[2], f"the width of the projected {what}")
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1 or width % heads:
        raise error(f"the projected {what} has {width} features for {heads!r} heads", "a divisor of the features")
    size = width // heads
    return te.compute(
        (x.shape[0], heads, x.shape[1], size), lambda b, h, s, d: x(b, s, h * size + d), name=f"{what}_heads"
    )


# ---------------------------------------------------------------- rotary positions


def _rotary_reference(
    x: Any, cos: Any, sin: Any, position_ids: Any = None, interleaved: bool = False, rotary_dim: int = 0
) -> np.ndarray:
    width = rotary_dim or x.shape[-1]
    made = x.copy()
    for b, h, s in np.ndindex(*x.shape[:3]):
        place = (b, s) if cos.ndim == 3 else (s if position_ids is None else position_ids[b, s],)
        first, second = (
            (slice(0, width, 2), slice(1, width, 2)) if interleaved else (slice(width // 2), slice(width // 2, width))
        )
        angle = cos[place] + 1j * sin[place]
        turned = (x[b, h, s][first] + 1j * x[b, h, s][second]) * angle
        made[b, h, s][first], made[b, h, s][second] = turned.real, turned.imag
    return made


@nn_operator(
    shapes="(…x), (…t), (…t) -> (…x)",
    reference=_rotary_reference,
    cases=(
        case(arg((2, 2, 3, 4)), arg((5, 2)), arg((5, 2))),
        case(arg((2, 1, 3, 4)), arg((7, 2)), arg((7, 2)), arg((2, 3), "int64", "indices below 7"), interleaved=True),
        case(arg((1, 2, 3, 6)), arg((1, 3, 2)), arg((1, 3, 2)), rotary_dim=4),
        case(arg((1, 2, 3, 4), "float16"), arg((3, 2), "float16"), arg((3, 2), "float16")),
    ),
)
def rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, position_ids: Any = None, interleaved: bool = False, rotary_dim: int = 0
) -> Tensor:
    """``x`` with pairs of features turned by an angle that depends on the position (Su et al., "RoFormer", 2021).

    ``x`` is ``(B, H, S, D)``; ``cos`` and ``sin`` are ``(P, R / 2)`` for position ``position_ids[b, s]`` (``s`` itself, where
    there are none), or ``(B, S, R / 2)``. Features ``d`` and ``d + R / 2`` are a pair, or with ``interleaved`` ``2 d`` and
    ``2 d + 1``. ``R`` is ``rotary_dim``, by default all of ``D``; the others stay. Raises ``TensorExpressionError`` for an
    odd ``R``, and where shapes do not agree.
    """
    data = require_tensor(require_float(x, "the data of rotary_embedding"), "the data of rotary_embedding", 4)
    batch, _, rows, features = data.shape
    width = rotary_dim or integer(features, "the number of features")
    if width % 2 or width < 0 or width > (constant(features) or width):
        raise error(f"{width} of {features} features are turned", "an even number, at most all of them")
    half = width // 2
    require_tensor(cos, "the cosines", 2, 3)
    require_extent(cos.shape[-1], half, f"a row of the cosines `{cos.name}` of shape {cos.shape}")
    if cos.ndim == 3:
        require_shape(cos, (batch, rows, half), "the table of cosines")
    elif position_ids is None and not at_most(rows, cos.shape[0]):
        raise error(
            f"the cosines `{cos.name}` of shape {cos.shape} are of fewer positions than the {rows} of `{data.name}`"
        )
    if position_ids is not None:
        require_tensor(cos, "the table of cosines that position_ids index", 2)
        require_shape(position_ids, (batch, rows), "position_ids")
    inner = wide(data.dtype)

    def table(of: Tensor, b: Any, s: Any, pair: Any) -> Expr:
        place = (
            (b, s) if of.ndim == 3 else (s if position_ids is None else from_front(position_ids(b, s), of.shape[0]),)
        )
        return of(*place, pair).astype(inner)

    def element(b: Any, h: Any, s: Any, d: Any) -> Expr:
        is_first = d % 2 == 0 if interleaved else d < half
        other = (
            te.if_then_else(is_first, d + 1, d - 1) if interleaved else te.if_then_else(is_first, d + half, d - half)
        )
        pair = d // 2 if interleaved else d % half
        value, partner = data(b, h, s, d).astype(inner), data(b, h, s, other).astype(inner)
        sine = table(sin, b, s, pair)
        turned = value * table(cos, b, s, pair) + partner * te.if_then_else(is_first, -sine, sine)
        result = turned.astype(data.dtype)
        is_all = constant(features) == width
        return result if is_all else te.if_then_else(d < const(width, d.dtype), result, data(b, h, s, d))

    return te.compute(data.shape, element, name="rotary_embedding")
