"""Rows of onnxruntime's attention (``com.microsoft``): queries, keys and values as its optimizer and its exporters write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph import Value
from ..graph.sizes import Extent, is_fixed
from .making import Unsupported
from .onnx_contrib import CONTRIB
from .onnx_networks import over_root
from .onnx_quantized import scaled_product
from .onnx_table import Call, rounded_once, row

_LOWEST = -3.4028234663852886e38


@row("Attention", domain=CONTRIB)
@rounded_once
def _attention(c: Call) -> Any:
    """``x``, the weights of q, k and v side by side, their bias; mask, past, what is added to scores."""
    made = c.op("matmul", c[0], c[1])
    made = made if c.get(2) is None else c.op("add", made, c[2])
    return _of_joined(c, made, c.get(3), c.get(4), c.get(5))


@row("QAttention", domain=CONTRIB)
def _quantized_attention(c: Call) -> Any:
    """The same of integers: ``x``, weights, bias, both scales, a mask, both zeros, past."""
    return _of_joined(c, scaled_product(c, c[0], c.get(6), c[3], 7, 4, 2), c.get(5), c.get(8), None)


def _of_joined(c: Call, joined: Value, mask: Value | None, past: Value | None, bias: Value | None) -> Any:
    """Attention of queries, keys and values side by side; the past and the present have keys, then values."""
    _require_usual(c, do_rotary=0, past_present_share_buffer=0)
    heads, width = int(c.attribute("num_heads")), joined.shape[2]
    widths = c.attribute("qkv_hidden_sizes") or (width // 3,) * 3
    ends = (0, widths[0], widths[0] + widths[1], sum(widths))
    q, k, v = (_heads(c, c.sliced(joined, [(2, slice(a, b))]), heads) for a, b in zip(ends, ends[1:]))
    pasts = (None, None) if past is None else (c.one_of(past, 0, 0), c.one_of(past, 0, 1))
    k, v = (_after(c, p, x) for p, x in zip(pasts, (k, v)))
    made = _attended(c, q, k, v, mask, bias)
    return made if len(c.outputs) == 1 else (made, c.op("stack", (k, v), 0))


@row("MultiHeadAttention", domain=CONTRIB)
@rounded_once
def _multi_head_attention(c: Call) -> Any:
    """Queries, keys, values, the bias of all three, a mask, what is added to scores, keys and values of the past."""
    if c.get(8) is not None or c.get(9) is not None or len(c.outputs) > 3:
        raise Unsupported("a past that is written where it is, beams, or its scores as a result")
    heads, q, k, v, bias = int(c.attribute("num_heads")), c[0], c.get(1), c.get(2), c.get(3)
    parts: list[Value | None] = [q, k, v]
    if len(q.shape) == 5:  # batch, rows, heads, q k v, size
        parts = [c.op("reshape", c.one_of(q, 3, n), (*q.shape[:2], heads * q.shape[4])) for n in range(3)]
    elif k is not None and len(k.shape) == 5:  # keys and values
        parts = [q, *(c.op("reshape", c.one_of(k, 3, n), (*k.shape[:2], heads * k.shape[4])) for n in range(2))]
    if bias is not None:
        begin = 0
        for n, part in enumerate(parts):
            if part is not None and len(part.shape) == 3:
                parts[n] = c.op("add", part, c.sliced(bias, [(0, slice(begin, begin + part.shape[2]))]))
                begin += part.shape[2]
    if any(part is None for part in parts):
        raise Unsupported("keys or values are left out")
    of_heads = [x if len(x.shape) == 4 else _heads(c, x, heads) for x in parts if x is not None]
    k, v = (_after(c, c.get(n), x) for n, x in zip((6, 7), of_heads[1:]))
    return (_attended(c, of_heads[0], k, v, c.get(4), c.get(5)), k, v)[: len(c.outputs)]


def _require_usual(c: Call, **usual: Any) -> None:
    """Refuse a node that sets one of these attributes to another value."""
    for name, value in usual.items():
        if c.attribute(name, value) != value:
            raise Unsupported(f"its `{name}`")


def _heads(c: Call, x: Value, heads: int) -> Value:
    """Rows of all heads side by side, head by head."""
    batch, rows, width = x.shape
    return c.op("transpose", c.op("reshape", x, (batch, rows, heads, width // heads)), (0, 2, 1, 3))


def _after(c: Call, past: Value | None, x: Value) -> Value:
    return x if past is None else c.joined((c.of_type(past, x.dtype), x), 2)


def _attended(c: Call, q: Value, k: Value, v: Value, mask: Value | None, bias: Value | None) -> Value:
    """Rows of all heads side by side, of as many heads of keys: to masked scores ``mask_filter_value`` is added."""
    rows, length = q.shape[2], k.shape[2]

    def hidden(scores: Value) -> Value:
        if mask is not None:
            fill = float(c.attribute("mask_filter_value", -10000.0))
            scores = c.op("where", _seen(c, mask, rows, length), scores, c.op("add", scores, fill))
        if c.attribute("unidirectional", 0):
            at = c.op("arange", length - rows, length, 1, "int32")
            before = c.op("less_equal", c.op("arange", 0, length, 1, "int32"), c.op("reshape", at, (rows, 1)))
            scores = c.op("where", before, scores, _LOWEST)
        return scores if bias is None else c.op("add", scores, c.of_type(bias, scores.dtype))

    return _mixed(c, q, k, v, hidden)


def _seen(c: Call, mask: Value, rows: Extent, length: Extent) -> Value:
    """Which scores count: a mask has the number of keys of each text, or also where they begin, or a number for each key, row and key, or place in a square."""
    at, (batch, *rest) = c.op("arange", 0, length, 1, "int32"), mask.shape
    if not rest:
        ends, texts = c.op("reshape", mask, (batch, 1, 1, 1)), c[0].shape[0]
        if texts == batch:
            return c.op("less", at, ends)
        if texts * 2 != batch:
            raise Unsupported("its mask has more than the ends and the begins of texts")
        ends, begins = (c.sliced(ends, [(0, slice(n * texts, (n + 1) * texts))]) for n in (0, 1))
        return c.op("logical_and", c.op("less", at, ends), c.op("greater_equal", at, begins))
    if len(rest) == 3:
        mask = c.sliced(mask, [(2, slice(length - rows, length)), (3, slice(0, length))])
    elif len(rest) < 3:
        mask = c.op("reshape", mask, (batch, 1, rest[0] if rest[1:] else 1, rest[-1]))
    return c.op("greater", mask, 0)


def _mixed(
    c: Call, q: Value, k: Value, v: Value, hidden: Callable[[Value], Value], sinks: Value | None = None
) -> Value:
    """Values by the softmax of scores, which ``hidden`` completes; heads share keys in groups. ``sinks`` are scores of no value, one for each head."""
    (batch, heads, rows, size), (_, pairs, length, _), wide = q.shape, k.shape, v.shape[3]
    groups = (batch, pairs, heads // pairs * rows)

    def attended(scores: Value) -> Value:
        scores = c.op("multiply", scores, float(c.attribute("scale", 0.0) or size**-0.5))
        if cap := float(c.attribute("softcap", 0.0)):
            scores = c.op("multiply", c.op("tanh", c.op("divide", scores, cap)), cap)
        scores = hidden(c.op("reshape", scores, (batch, heads, rows, length)))
        if sinks is not None:
            each = c.op(
                "broadcast_to",
                c.op("reshape", c.of_type(sinks, scores.dtype), (1, heads, 1, 1)),
                (batch, heads, rows, 1),
            )
            scores = c.joined((scores, each), 3)
        weights = c.op("nn.softmax", scores)
        weights = weights if sinks is None else c.sliced(weights, [(3, slice(0, length))])
        return c.op("matmul", c.op("reshape", weights, (*groups, length)), v)

    mixed = c.summed(attended, "matmul", c.op("reshape", q, (*groups, size)), k, transp_b=True)
    mixed = c.op("transpose", c.op("reshape", mixed, (batch, heads, rows, wide)), (0, 2, 1, 3))
    return c.op("reshape", mixed, (batch, rows, heads * wide))


# ---------------------------------------------------------------- heads that share keys, at places


@row("GroupQueryAttention", domain=CONTRIB)
def _group_query_attention(c: Call) -> Any:
    """Keys and values are written where they are in the memory of the past, which is as long as it is, or as long as the known total."""
    _require_usual(c, causal=1, sliding_window_cache=0, k_quant_type="NONE", v_quant_type="NONE", qk_output=0)
    if given := next((n for n in (12, 13, 16) if c.get(n) is not None), None):
        raise Unsupported(f"its input {given}: scales of the past, or lengths of queries")
    heads, pairs = int(c.attribute("num_heads")), int(c.attribute("kv_num_heads"))
    batch, rows, width = c[0].shape
    size = width // (heads if c.get(1) is not None else heads + 2 * pairs)
    ends = (heads * size, (heads + pairs) * size, (heads + 2 * pairs) * size)
    parts = [c[n] for n in range(3)] if c.get(1) is not None else [
        c.sliced(c[0], [(2, slice(a, b))]) for a, b in zip((0, *ends), ends)
    ]  # fmt: skip
    q, k, v = (_heads(c, x, n) for x, n in zip(parts, (heads, pairs, pairs)))
    if c.get(14) is not None:
        q, k = (_normalized(c, x, c[n], name) for x, n, name in ((q, 14, "q"), (k, 15, "k")))
    last = c.op("reshape", c.op("astype", c[5], "int32"), (batch, 1))
    first = c.op("maximum", c.op("subtract", last, rows - 1), 0)
    places = c.op("add", first, c.op("reshape", c.op("arange", 0, rows, 1, "int32"), (1, rows)))
    if c.attribute("do_rotary", 0):
        turns = places if c.get(9) is None else c[9]
        q, k = (_turned(c, x, *_turns(c, turns, 7), c.attribute("rotary_interleaved", 0)) for x in (q, k))
    total = c.known(c[6])
    presents = [_written(c, c.get(n), x, places, 0 if total is None else total.max()) for n, x in ((3, k), (4, v))]
    length = presents[0].shape[2]
    at, places = c.op("arange", 0, length, 1, "int32"), c.op("reshape", places, (batch, 1, rows, 1))
    seen = c.op("less_equal", at, places)
    if (window := int(c.attribute("local_window_size", -1))) > 0:
        seen = c.op("logical_and", seen, c.op("greater", at, c.op("subtract", places, window)))
    sinks = c.get(11)
    if sinks is None and c.attribute("smooth_softmax", 0):
        sinks = c.op("full", (heads,), 0.0, "float32")

    def hidden(scores: Value) -> Value:
        if (bias := c.get(10)) is not None:
            more = length - bias.shape[3]
            bias = bias if more == 0 else c.padded(bias, [(0, 0)] * 3 + [(0, more)], "constant", 0)
            scores = c.op("add", scores, c.of_type(bias, scores.dtype))
        return c.op("where", seen, scores, -1e9)

    return [_mixed(c, q, presents[0], presents[1], hidden, sinks), *presents][: len(c.outputs)]


def _normalized(c: Call, x: Value, scale: Value, name: str) -> Value:
    """The rows of each head over the root of the mean of their squares."""
    epsilon = c.attribute(f"{name}_norm_epsilon", c.attribute("qk_norm_epsilon", 1e-6))
    inner = Call(c.builder, c.operator, c.version, [x, scale], {"epsilon": epsilon}, c.outputs)
    return over_root(inner, x, scale, 3)


def _written(c: Call, past: Value | None, new: Value, places: Value, total: Extent) -> Value:
    """The past with rows written at their places, in room for ``total`` of them."""
    batch, pairs, rows, size = new.shape
    if past is None or past.shape[2] == 0:
        return new
    more = total - past.shape[2]
    if not is_fixed(more) or more > 0:
        past = c.joined((past, c.op("full", (batch, pairs, more, size), 0.0, str(past.dtype))), 2)
    at = c.op("broadcast_to", c.op("reshape", places, (batch, 1, rows, 1)), new.shape)
    return c.op("scatter_elements", past, at, new, 2)


# ---------------------------------------------------------------- rotary positions


@row("RotaryEmbedding", domain=CONTRIB)
def _rotary(c: Call) -> Any:
    """``x``, places (of each row, or of the first), cosines and sines."""
    _require_usual(c, is_packed_batching=0, scale=1.0)
    x, places, flat = c[0], c[1], len(c[0].shape) == 3
    part, heads = int(c.attribute("rotary_embedding_dim", 0)), int(c.attribute("num_heads", 0))
    if flat:
        heads = heads if part else x.shape[2] // (2 * c[2].shape[1])
        x = _heads(c, x, heads)
    batch, heads, rows, size = x.shape
    if len(places.shape) < 2:
        each = c.op(
            "add",
            c.op("reshape", places, (1, 1)),
            c.op("reshape", c.op("arange", 0, rows, 1, str(places.dtype)), (1, rows)),
        )
        places = c.op("broadcast_to", each, (batch, rows))
    made = _turned(c, x, *_turns(c, places, 2), c.attribute("interleaved", 0))
    return c.op("reshape", c.op("transpose", made, (0, 2, 1, 3)), (batch, rows, heads * size)) if flat else made


def _turns(c: Call, places: Value, first: int) -> tuple[Value, Value]:
    """The cosines and the sines of places, of the two inputs from ``first`` on."""
    batch, rows = places.shape
    cos, sin = (c.op("take", c[n], c.op("reshape", places, (batch, 1, rows)), 0) for n in (first, first + 1))
    return cos, sin


def _turned(c: Call, x: Value, cos: Value, sin: Value, beside: int) -> Value:
    """Pairs of elements of ``x``, turned: those half of the turned ones apart, or neighbours."""
    half = cos.shape[-1]

    def part(a: int, b: int, step: int = 1) -> Value:
        return c.sliced(x, [(3, slice(a, b, step))])

    one, other = (part(0, 2 * half, 2), part(1, 2 * half, 2)) if beside else (part(0, half), part(half, 2 * half))
    first = c.op("subtract", c.op("multiply", one, cos), c.op("multiply", other, sin))
    second = c.op("add", c.op("multiply", other, cos), c.op("multiply", one, sin))
    made = (
        c.op("reshape", c.op("stack", (first, second), 4), (*x.shape[:3], 2 * half))
        if beside
        else c.joined((first, second), 3)
    )
    return made if 2 * half == x.shape[3] else c.joined((made, part(2 * half, x.shape[3])), 3)
