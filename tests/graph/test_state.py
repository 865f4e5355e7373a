"""State that calls update in place: keys and values of a small transformer, which generates words as it does without a cache."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.errors import RunError
from tir.graph import Builder, ModelError, check_plan, compile_graph, groups, plan

HEADS, SIZE, MOST, WORDS = 2, 4, 12, 11
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(3)
WEIGHTS = {
    name: RNG.standard_normal(shape).astype("float32") / 2
    for name, shape in {"words": (WORDS, WIDTH), "q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH), "head": (WIDTH, WORDS)}.items()
}  # fmt: skip
STATE = ("keys", "values")


def attention_with_a_cache(rows):
    """A block that reads ``rows`` words at ``places``, and the keys and values of those before, which it adds to."""
    b = Builder()
    ids, places = b.input("ids", (rows,), "int32"), b.input("places", (rows,), "int32")
    (rows,) = ids.shape
    w = {name: b.constant(array, name) for name, array in WEIGHTS.items()}
    x = b.call("take", w["words"], ids, 0)

    def heads(name):
        return b.call("transpose", b.call("reshape", b.call("matmul", x, w[name]), (rows, HEADS, SIZE)), (1, 0, 2))

    at = b.call("broadcast_to", b.call("reshape", places, (1, rows, 1)), (HEADS, rows, SIZE))
    kept = {n: b.call("scatter_elements", b.input(n, (HEADS, MOST, SIZE)), at, heads(n[0]), 1) for n in STATE}
    scores = b.call("matmul", heads("q"), kept["keys"], transp_b=True)
    rest = b.constant(np.arange(MOST, dtype="int32").reshape(1, 1, MOST), "rest")
    is_seen = b.call("less_equal", rest, b.call("reshape", places, (1, rows, 1)))
    weights = b.call("nn.softmax", b.call("where", is_seen, scores, -1e9))
    mixed = b.call("transpose", b.call("matmul", weights, kept["values"]), (1, 0, 2))
    y = b.call("add", x, b.call("matmul", b.call("reshape", mixed, (rows, WIDTH)), w["o"]))
    return b.graph({"logits": b.call("matmul", y, w["head"]), **kept})


def without_a_cache(ids):
    """The same of all words at once, in NumPy."""
    x = WEIGHTS["words"][ids].astype("float64")
    q, k, v = ((x @ WEIGHTS[n]).reshape(-1, HEADS, SIZE).transpose(1, 0, 2) for n in "qkv")
    scores = q @ k.transpose(0, 2, 1) + np.where(np.tri(len(ids)) > 0, 0, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(-1, WIDTH)
    return (x + mixed @ WEIGHTS["o"]) @ WEIGHTS["head"]


def place(first, last):
    return np.arange(first, last, dtype="int32")


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
@pytest.mark.parametrize("rows", [(3, 1), ("n",)])
def test_words_are_generated_from_keys_and_values_that_are_kept(target, rows):
    """By a model for the prompt and one for each further word, or by one for both."""
    made = [compile_graph(attention_with_a_cache(each), target, STATE) for each in rows]
    prefill, decode = made[0], made[-1]
    assert [p.name for p in decode.inputs] == ["ids", "places"] and [p.name for p in decode.outputs] == ["logits"]
    assert [p.name for p in decode.state] == list(STATE)
    words, state = [1, 5, 2], decode.new_state()
    logits = prefill(np.int32(words), place(0, 3), state=state)
    np.testing.assert_allclose(logits, without_a_cache(words), rtol=1e-4, atol=1e-4)
    for n in range(3, MOST):
        words.append(int(logits[-1].argmax()))
        logits = decode(np.int32(words[-1:]), place(n, n + 1), state=state)
        np.testing.assert_allclose(logits[-1], without_a_cache(words)[-1], rtol=1e-4, atol=1e-4)


def test_a_call_writes_the_rows_of_its_words_and_no_others():
    model = compile_graph(attention_with_a_cache(1), "interpreter", STATE)
    state = {name: np.full((HEADS, MOST, SIZE), 7, "float32") for name in STATE}
    model(np.int32([1]), place(4, 5), state=state)
    for array in state.values():
        assert (np.delete(array, 4, 1) == 7).all() and not (array[:, 4] == 7).any()
    assert model.plan.nbytes < HEADS * MOST * SIZE * 4 * 2, "there is no copy of the state"


def test_a_model_with_state_is_saved_and_loaded(tmp_path):
    model = compile_graph(attention_with_a_cache(1), "llvm", STATE)
    model.save(tmp_path / "decode.so", header=tmp_path / "decode.h")
    loaded = tir.load(tmp_path / "decode.so")
    one, other = model.new_state(), loaded.new_state()
    for n, word in enumerate([1, 5, 2]):
        want = model(np.int32([word]), place(n, n + 1), state=one)
        np.testing.assert_array_equal(loaded(np.int32([word]), place(n, n + 1), state=other), want)
    assert "float *keys, float *values" in (tmp_path / "decode.h").read_text()


def test_a_profile_has_a_state_of_its_own():
    model = compile_graph(attention_with_a_cache(1), "llvm", STATE)
    assert len(model.profile(np.int32([1]), place(0, 1), repeat=1).kernels) == len(set(model.kernels))


def test_wrong_states_are_refused_before_a_call():
    model = compile_graph(attention_with_a_cache(1), "interpreter", STATE)
    arguments, state = (np.int32([1]), place(0, 1)), model.new_state()
    frozen = np.zeros((HEADS, MOST, SIZE), "float32")
    frozen.flags.writeable = False
    for wrong, said in (
        (None, "no array was given for state keys"),
        ({"keys": state["keys"]}, "no array was given for state values"),
        ({**state, "value": state["keys"]}, "no state 'value'"),
        ({**state, "keys": state["keys"][:, :-1]}, "contiguous"),
        ({**state, "keys": np.zeros((HEADS, 2, SIZE), "float32")}, "size 1 is 2"),
        ({**state, "keys": state["keys"].astype("float64")}, "float64"),
        ({**state, "keys": frozen}, "may be written"),
    ):
        with pytest.raises(RunError, match=said):
            model(*arguments, state=wrong)
    shared = {"keys": state["keys"], "values": state["keys"]}
    with pytest.raises(RunError, match="shares memory"):
        model(*arguments, state=shared)


def test_states_that_cannot_be_updated_in_place_are_refused_when_compiled():
    b = Builder()
    x, y = b.input("x", (4, 4)), b.input("y", (4, 4))
    graph = b.graph({"x": b.call("add", x, y), "y": b.call("transpose", y), "z": b.call("cumsum", x, 1), "w": x})
    for state, said in (
        (("q",), "'q' must be an input and a result"),
        (("z",), "'z' must be an input and a result"),
        (("y",), "cannot be updated in place by transpose"),
        (("x",), "cannot be updated in place by add.*read after that"),
    ):
        with pytest.raises(ModelError, match=said):
            compile_graph(graph, "interpreter", state)
    narrower = Builder()
    v = narrower.input("v", (4,))
    with pytest.raises(ModelError, match="no tensor of its shape"):
        compile_graph(narrower.graph({"v": narrower.call("strided_slice", v, (0,), (2,))}), "interpreter", ("v",))


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_state_is_written_by_a_kernel_that_does_not_read_it(target):
    b = Builder()
    last, x = b.input("last", (4, 4)), b.input("x", (4, 4))
    graph = b.graph({"change": b.call("subtract", x, b.call("cumsum", last, 0)), "last": b.call("cumsum", x, 1)})
    model = compile_graph(graph, target, ("last",))
    state, before = model.new_state(), np.zeros((4, 4))
    for n in (1, 2):
        np.testing.assert_allclose(model(np.full((4, 4), n, "float32"), state=state), n - before.cumsum(0))
        before = np.full((4, 4), n).cumsum(1)
        np.testing.assert_allclose(state["last"], before)


def test_the_checker_finds_a_state_that_is_read_after_it_was_written():
    b = Builder()
    last, x = b.input("last", (4, 4)), b.input("x", (4, 4))
    new, old = b.call("cumsum", x, 1), b.call("cumsum", last, 0)
    for nodes, is_right in (({"old": old, "last": new}, True), ({"last": new, "old": old}, False)):
        order = sorted(groups(b.graph(nodes)), key=lambda g: list(nodes.values()).index(g.outputs[0]))
        made = plan([g for g in order if is_right or g.outputs[0] is new], [old], state={new: last})
        if is_right:
            check_plan(made, order)
        else:
            with pytest.raises(ModelError, match="reads %last.*, whose memory has been overwritten"):
                check_plan(made, order)
            with pytest.raises(ModelError, match="it is read after that as it was before"):
                plan(order, [old], state={new: last})


def test_a_sum_that_goes_on_from_call_to_call():
    b = Builder()
    total, x = b.input("total", (4,)), b.input("x", (4,))
    new = b.call("add", total, x)
    model = compile_graph(b.graph({"total": new, "mean": b.call("mean", new)}), "llvm", ("total",))
    state = model.new_state()
    assert [float(model(np.full(4, n, "float32"), state=state)) for n in (1, 2, 3)] == [1, 3, 6]
