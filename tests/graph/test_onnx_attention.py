"""Attention as onnxruntime adds it to ONNX, judged by NumPy."""

import numpy as np
import pytest

from tir.graph import compile_graph
from tir.importers.onnx import from_onnx

onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
from onnx import helper, numpy_helper  # noqa: E402


def numbers(*shape, seed=0):
    return (np.random.default_rng([seed, *shape]).integers(-9, 9, shape) / 8).astype("float32")


def judge(operator, given, constants, expected, names=None, **attributes):
    """One node of arrays, by name in order; an array that is None is left out."""
    names = names or [n if a is not None else "" for n, a in {**given, **constants}.items()]
    outputs = ["" if e is None else f"y{n}" for n, e in enumerate(expected)]
    node = helper.make_node(operator, names, outputs, domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, numpy_helper.from_array(a).data_type, a.shape)
        for n, a in given.items()
        if a is not None
    ]
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items() if a is not None]
    results = [helper.make_tensor_value_info(n, 1, None) for n in outputs if n]
    for result in results:
        result.type.tensor_type.ClearField("elem_type")
    model = helper.make_model(
        helper.make_graph([node], "g", infos, results, held),
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    got = compile_graph(from_onnx(model), "interpreter")(**{n: a for n, a in given.items() if a is not None})
    wanted = [e for e in expected if e is not None]
    for one, other in zip(got if len(wanted) > 1 else (got,), wanted):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def attended(q, k, v, heads, more=0.0):
    """Rows of queries, keys and values, all heads side by side; ``more`` is added to scores."""
    q, k, v = (x.astype("float64").reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / q.shape[3] ** 0.5 + more
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = scores / scores.sum(-1, keepdims=True) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(*mixed.shape[:1], mixed.shape[2], -1)


def hidden(seen):
    return np.where(seen, 0, -10000.0)


SQUARE = np.random.default_rng(0).integers(0, 2, (2, 3, 5)).astype("int32")
MASKS = {
    "none": (None, 0.0),
    "lengths": (np.int32([3, 5]), hidden([[1, 1, 1, 0, 0], [1] * 5])[:, None, None]),
    "ends and begins": (np.int32([3, 5, 1, 0]), hidden([[0, 1, 1, 0, 0], [1] * 5])[:, None, None]),
    "keys": (np.int32([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0]]), hidden([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0]])[:, None, None]),
    "rows and keys": (SQUARE, hidden(SQUARE)[:, None]),
}


@pytest.mark.parametrize("name", MASKS)
def test_queries_of_some_rows_see_keys_that_a_mask_leaves(name):
    mask, more = MASKS[name]
    q, k, v, bias, extra = numbers(2, 3, 8), numbers(2, 5, 8, seed=1), numbers(2, 5, 8, seed=2), numbers(24), numbers(1, 2, 3, 5)  # fmt: skip
    parts = [x + b for x, b in zip((q, k, v), bias.reshape(3, 8))]
    given = {"q": q, "k": k, "v": v, "b": bias, "m": mask, "e": extra}
    judge("MultiHeadAttention", given, {}, [attended(*parts, 2, more + extra)], num_heads=2)


@pytest.mark.parametrize("name", [n for n in MASKS if n != "rows and keys"])
def test_a_product_makes_queries_keys_and_values_after_those_of_the_past(name):
    mask, more = MASKS[name]
    x, w, bias, past = numbers(2, 3, 6), numbers(6, 20), numbers(20), numbers(2, 2, 2, 2, 4)
    past = past[..., :4]
    q, k, v = np.split(x @ w + bias, (8, 16), 2)
    v = np.concatenate([v, v], 2)  # values as wide as keys, for the past
    joined = [np.concatenate([p.transpose(0, 2, 1, 3).reshape(2, 2, 8), y], 1) for p, y in zip(past, (k, v))]
    later = np.tril(np.ones((3, 5)), 2)
    present = np.stack([y.reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for y in joined])
    made = attended(q, *joined, 2, np.where(later, more, -np.inf))
    weights = np.concatenate([w, w[:, 16:]], 1), np.concatenate([bias, bias[16:]])
    given = {"x": x, "w": weights[0], "b": weights[1], "m": mask, "p": past}
    judge("Attention", given, {}, [made, present], num_heads=2, unidirectional=1)


def test_values_narrower_than_keys():
    x, w = numbers(2, 3, 6), numbers(6, 20)
    made = attended(*np.split(x @ w, (8, 16), 2), 2)
    judge("Attention", {"x": x, "w": w}, {}, [made], num_heads=2, qkv_hidden_sizes=[8, 8, 4])


def test_heads_that_lie_beside_one_another():
    packed = numbers(2, 3, 2, 3, 4)
    made = attended(*(packed[:, :, :, n].reshape(2, 3, 8) for n in range(3)), 2)
    judge("MultiHeadAttention", {"q": packed}, {}, [made], num_heads=2)
    q, packed = numbers(2, 3, 8), numbers(2, 5, 2, 2, 4)
    made = attended(q, *(packed[:, :, :, n].reshape(2, 5, 8) for n in range(2)), 2)
    judge("MultiHeadAttention", {"q": q, "k": packed}, {}, [made], num_heads=2)
    k, v = numbers(2, 2, 5, 4), numbers(2, 2, 5, 4, seed=1)
    flat = [y.transpose(0, 2, 1, 3).reshape(2, 5, 8) for y in (k, v)]
    judge("MultiHeadAttention", {"q": q, "k": k, "v": v}, {}, [attended(q, *flat, 2), k, v], num_heads=2)


def test_attention_of_integers():
    rng = np.random.default_rng(1)
    x, w = rng.integers(0, 255, (2, 3, 6)).astype("uint8"), rng.integers(-99, 99, (6, 24)).astype("int8")
    bias, scales = numbers(24), np.linspace(0.01, 0.02, 24).astype("float32")
    made = attended(*np.split((x.astype(float) - 120) * 0.01 @ (w * scales) + bias, 3, 2), 2, MASKS["keys"][1][..., :3])
    constants = {"w": w, "b": bias, "s": np.float32(0.01), "t": scales}
    more = {"m": np.ascontiguousarray(MASKS["keys"][0][:, :3]), "z": np.uint8(120)}
    judge("QAttention", {"x": x}, {**constants, **more}, [made], num_heads=2)


@pytest.mark.parametrize("beside", [0, 1])
@pytest.mark.parametrize("places", [np.int64([2]), np.int64([[0, 1, 2], [5, 4, 9]])])
@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("flat", [False, True])
def test_rows_are_turned_by_their_places(beside, places, part, flat):
    turns = np.outer(np.arange(12), 1 / 2.0 ** np.arange((part or 8) // 2)).astype("float32")
    x = numbers(2, 3, 2, 8)
    at = places if places.ndim == 2 else np.broadcast_to(places + np.arange(3), (2, 3))
    cos, sin = (f(turns[at])[:, :, None] for f in (np.cos, np.sin))
    half = turns.shape[1]
    one, other = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if beside else (slice(half), slice(half, 2 * half))
    made = x.astype(float)
    made[..., one] = x[..., one] * cos - x[..., other] * sin
    made[..., other] = x[..., other] * cos + x[..., one] * sin
    x, made = (y.reshape(2, 3, 16) if flat else y.transpose(0, 2, 1, 3) for y in (x, made))
    attributes = {"rotary_embedding_dim": part, "num_heads": 2} if part else {}
    tables = {"c": np.cos(turns), "s": np.sin(turns)}
    judge(
        "RotaryEmbedding", {"x": np.ascontiguousarray(x), "p": places}, tables, [made], interleaved=beside, **attributes
    )


def _at_places(q, k, v, past, last, turns=None, beside=False, cap=0.0, window=0, sinks=None, more=None):
    """Rows of ``q``, ``k`` and ``v`` (batch, rows, heads, size) after those that the past has, up to the place ``last`` of each of a batch."""
    (batch, rows, heads, size), pairs = q.shape, k.shape[2]
    kept, out = [p.copy() for p in past], np.zeros(q.shape)
    for b, r in np.ndindex(batch, rows):
        at = max(last[b] - rows + 1, 0) + r

        def turned(x):
            if turns is None:
                return x
            half = turns.shape[1]
            one, other = (
                (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if beside else (slice(half), slice(half, 2 * half))
            )
            made = x.copy()
            made[..., one] = x[..., one] * np.cos(turns[at]) - x[..., other] * np.sin(turns[at])
            made[..., other] = x[..., other] * np.cos(turns[at]) + x[..., one] * np.sin(turns[at])
            return made

        kept[0][b, :, at], kept[1][b, :, at] = turned(k[b, r]), v[b, r]
        for h in range(heads):
            seen = slice(max(at + 1 - window, 0) if window else 0, at + 1)
            scores = kept[0][b, h // (heads // pairs), seen] @ turned(q[b, r])[h] / size**0.5
            scores = cap * np.tanh(scores / cap) if cap else scores
            scores = np.exp(scores if more is None else scores + more[b, h, r, seen])
            total = scores.sum() + (0 if sinks is None else np.exp(sinks[h]))
            out[b, r, h] = scores / total @ kept[1][b, h // (heads // pairs), seen]
    return [out.reshape(batch, rows, -1), *kept]


@pytest.mark.parametrize(
    ("rows", "before", "last", "total", "options"),
    [
        (3, 0, [2, 2], 3, {}),
        (1, 8, [4, 7], None, {"turns": 16}),
        (2, 8, [3], None, {"turns": 8, "beside": True}),
        (2, 4, [5], 6, {"packed": True, "cap": 2.0}),
        (1, 8, [4, 7], None, {"window": 3, "smooth": 1}),
        (3, 5, [7], 8, {"sinks": numbers(4, seed=5), "more": numbers(1, 4, 3, 8)}),
    ],
)
def test_queries_share_keys_that_are_written_where_they_are_kept(rows, before, last, total, options):
    heads, pairs, size, batch = 4, 2, 32, len(last)
    q, k, v = (numbers(batch, rows, n, size, seed=n) for n in (heads, pairs, pairs + 1))
    v = v[:, :, :pairs]
    past = [numbers(batch, pairs, before, size, seed=n) for n in (7, 8)]
    turns = (
        np.outer(np.arange(16), 1 / 2.0 ** np.arange(options["turns"])).astype("float32")
        if "turns" in options
        else None
    )
    flat = [x.reshape(batch, rows, -1) for x in (q, k, v)]
    given = {"q": np.concatenate(flat, 2)} if "packed" in options else dict(zip("qkv", flat))
    given |= {"pk": past[0], "pv": past[1], "last": np.int32(last)}
    known = {} if total is None else {"total": np.int32(total)}
    open_total = {"total": np.int32(max(last) + 1)} if total is None else {}
    more = {} if turns is None else {"cos": np.cos(turns), "sin": np.sin(turns)}
    attributes = {
        "num_heads": heads,
        "kv_num_heads": pairs,
        "do_rotary": int(turns is not None),
        "rotary_interleaved": int("beside" in options),
        "softcap": options.get("cap", 0.0),
        "local_window_size": options.get("window", -1),
        "smooth_softmax": options.get("smooth", 0),
    }
    given |= {n: options[n] for n in ("more", "sinks") if n in options}
    held = {**known, **more}
    order = ("q", "k", "v", "pk", "pv", "last", "total", "cos", "sin", "", "more", "sinks")
    names = [n if n in {**given, **open_total, **held} else "" for n in order]
    length = max(before, total or 0)
    room = [np.concatenate([p, np.zeros((batch, pairs, length - before, size), "float32")], 2) for p in past]
    sinks = np.zeros(heads) if "smooth" in options else options.get("sinks")
    rest = options.get("cap", 0.0), options.get("window", 0), sinks, options.get("more")
    want = _at_places(q, k, v, room, last, turns, "beside" in options, *rest)
    judge("GroupQueryAttention", {**given, **open_total}, held, want, names, **attributes)
