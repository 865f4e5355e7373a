"""Recurrent layers: states over time by ``te.scan``. Products with the inputs are made for all times at once, before.

Weights of gates are one above the other, in the order of ``weight_layout``. All is computed in float32 for types of 16 bits
and less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import DType, Expr, te
from ...te import Tensor, equate, error
from ..promotion import wide
from ..registry import complete
from ._operator import arg, case, nn_operator

_ACTIVATIONS: dict[str, Callable[[Any], Expr]] = {
    "sigmoid": lambda x: te.sigmoid(x),
    "tanh": lambda x: te.tanh(x),
    "relu": lambda x: te.max(x, te.const(0, x.dtype)),
}


def _activation(value: Any, what: str) -> Callable[[Any], Expr]:
    """A function of an expression, or the name of one. Raises ``TensorExpressionError``."""
    if isinstance(value, str) and value in _ACTIVATIONS:
        return _ACTIVATIONS[value]
    if isinstance(value, str) or not callable(value):
        raise error(f"{what} is {value!r}", f"a function of an expression, or {', '.join(map(repr, _ACTIVATIONS))}")
    function: Any = value
    return function


class _Layer:
    """What the layers have in common: the inputs of ``gates`` for each time, and states that begin with given rows.

    Time 0 is the initial state; at time ``t`` the input ``t - 1`` is read, or with ``reverse`` the ``t``-th from the end.
    """

    def __init__(self, name: str, data: Any, w_i: Any, w_h: Any, b_i: Any, b_h: Any, gates: int, reverse: bool):
        self.name = name
        self.data: Tensor = data
        self.inner: DType = wide(self.data.dtype)
        self.steps, self.batch, self.features = self.data.shape
        self.gates, self.reverse = gates, reverse
        self.hidden = w_i.shape[0] // gates
        self.recurrent: Tensor = w_h
        self.input_biases = [] if b_i is None else [b_i]
        self.biases = [] if b_h is None else [b_h]
        self.inputs = self._inputs(w_i)

    def _inputs(self, w_i: Tensor) -> Tensor:
        k = te.reduce_axis((0, self.features), "k")

        def product(t: Any, b: Any, row: Any) -> Expr:
            return te.sum(self.wide(self.data(t, b, k)) * self.wide(w_i(row, k)), axis=k)

        shape = (self.steps, self.batch, self.gates * self.hidden)
        products = te.compute(shape, product, name=f"{self.name}_inputs")
        if not self.input_biases:
            return products
        bias = self.input_biases[0]
        return te.compute(
            shape, lambda t, b, row: products(t, b, row) + self.wide(bias(row)), name=f"{self.name}_inputs_bias"
        )

    def wide(self, value: Any) -> Expr:
        return value.astype(self.inner)

    def input(self, t: Any, b: Any, gate: int, j: Any) -> Expr:
        return self.inputs(self.steps - t if self.reverse else t - 1, b, gate * self.hidden + j)

    def state(self, initial: Any, width: Any, name: str) -> tuple[Tensor, Tensor]:
        """A state ``(steps + 1, batch, width)``, and its first row."""

        def first(t: Any, b: Any, j: Any) -> Expr:
            return te.const(0, self.inner) if initial is None else self.wide(initial(b, j))

        state = te.placeholder((self.steps + 1, self.batch, width), self.inner, name=f"{name}_state")
        return state, te.compute((1, self.batch, width), first, name=f"{name}_initial")

    def products(self, state: Tensor, gates: Sequence[int], name: str = "recurrent") -> Callable[..., Expr]:
        """Of ``gates``, which follow each other, the products of the recurrent weights with the state before: a function of t, b, gate and j."""
        k = te.reduce_axis((0, state.shape[2]), "k")
        first = gates[0] * self.hidden

        def product(t: Any, b: Any, row: Any) -> Expr:
            return te.sum(state(t - 1, b, k) * self.wide(self.recurrent(row + first, k)), axis=k)

        shape = (self.steps + 1, self.batch, len(gates) * self.hidden)
        made = te.compute(shape, product, name=f"{self.name}_{name}")
        return lambda t, b, gate, j: self.biased(made(t, b, gate * self.hidden - first + j), gate, j)

    def biased(self, value: Any, gate: int, j: Any) -> Expr:
        """``value`` plus the recurrent bias of a gate."""
        return value + self.wide(self.biases[0](gate * self.hidden + j)) if self.biases else value

    def outputs(self, made: Any) -> list[Tensor]:
        """The states after each input, in the order in which they are computed."""
        states = made if isinstance(made, list) else [made]
        return [self._output(state, name) for state, name in zip(states, ("hidden", "cell"))]

    def _output(self, state: Tensor, name: str) -> Tensor:
        def element(t: Any, b: Any, j: Any) -> Expr:
            return state(t + 1, b, j).astype(self.data.dtype)

        return te.compute((self.steps, self.batch, state.shape[2]), element, name=f"{self.name}_{name}")


def _places(layout: Any, letters: str, name: str) -> list[int]:
    """Where each of ``letters`` is in a layout of gates. Raises ``TensorExpressionError``."""
    if not isinstance(layout, str) or sorted(layout) != sorted(letters):
        raise error(f"the weight_layout of {name} is {layout!r}", f"the letters of {letters!r} in any order")
    return [layout.index(c) for c in letters]


# ---------------------------------------------------------------- references


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


_NUMPY: dict[str, Any] = {"sigmoid": _sigmoid, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


def _in_time(x: np.ndarray, reverse: bool, step: Callable[[np.ndarray], tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """What ``step`` makes of the input of each time, in the order in which it is made."""
    made = [step(row) for row in (x[::-1] if reverse else x)]
    return [np.stack(each) for each in zip(*made)]


def _gates(x: Any, weights: Any, bias: Any, layout: str, order: str) -> list[np.ndarray]:
    parts = np.split(weights, len(layout)), np.split(np.zeros(len(weights)) if bias is None else bias, len(layout))
    return [x @ parts[0][layout.index(c)].T + parts[1][layout.index(c)] for c in order]


@complete
def _rnn_reference(x: Any, w_i: Any, w_h: Any, b_i: Any, b_h: Any, h_init: Any, act: str, reverse: bool) -> np.ndarray:
    state = [np.zeros((x.shape[1], len(w_i))) if h_init is None else h_init]

    def step(row: np.ndarray) -> tuple[np.ndarray, ...]:
        total = row @ w_i.T + state[0] @ w_h.T + (0 if b_i is None else b_i) + (0 if b_h is None else b_h)
        state[0] = _NUMPY[act](total)
        return (state[0],)

    return _in_time(x, reverse, step)[0]


@complete
def _gru_reference(
    x: Any, w_i: Any, w_h: Any, b_i: Any, b_h: Any, h_init: Any, f_act: str, g_act: str, reverse: bool,
    linear_before_reset: bool, weight_layout: str,
) -> np.ndarray:  # fmt: skip
    hidden = len(w_i) // 3
    state = [np.zeros((x.shape[1], hidden)) if h_init is None else h_init]
    n = weight_layout.index("H")
    own, bias = (
        w_h[n * hidden : (n + 1) * hidden],
        (np.zeros(len(w_i)) if b_h is None else b_h)[n * hidden : (n + 1) * hidden],
    )

    def step(row: np.ndarray) -> tuple[np.ndarray, ...]:
        a, b = _gates(row, w_i, b_i, weight_layout, "ZRH"), _gates(state[0], w_h, b_h, weight_layout, "ZRH")
        z, r = _NUMPY[f_act](a[0] + b[0]), _NUMPY[f_act](a[1] + b[1])
        inner = r * b[2] if linear_before_reset else (r * state[0]) @ own.T + bias
        state[0] = (1 - z) * _NUMPY[g_act](a[2] + inner) + z * state[0]
        return (state[0],)

    return _in_time(x, reverse, step)[0]


@complete
def _lstm_reference(
    x: Any, w_i: Any, w_h: Any, b_i: Any, b_h: Any, h_init: Any, c_init: Any, proj: Any, p_i: Any, p_f: Any, p_o: Any,
    f_act: str, g_act: str, h_act: str, reverse: bool, weight_layout: str,
) -> Any:  # fmt: skip
    batch, hidden = x.shape[1], len(w_i) // 4
    h = np.zeros((batch, w_h.shape[1])) if h_init is None else h_init
    state = [h, np.zeros((batch, hidden)) if c_init is None else c_init]
    peep = [0 if p is None else p for p in (p_i, p_f, p_o)]

    def step(row: np.ndarray) -> tuple[np.ndarray, ...]:
        a, b = _gates(row, w_i, b_i, weight_layout, "IFGO"), _gates(state[0], w_h, b_h, weight_layout, "IFGO")
        i, f, g, o = (p + q for p, q in zip(a, b))
        i, f = _NUMPY[f_act](i + peep[0] * state[1]), _NUMPY[f_act](f + peep[1] * state[1])
        state[1] = f * state[1] + i * _NUMPY[g_act](g)
        made = _NUMPY[f_act](o + peep[2] * state[1]) * _NUMPY[h_act](state[1])
        state[0] = made if proj is None else made @ proj.T
        return (state[0], state[1])

    return tuple(_in_time(x, reverse, step))


def _arguments(gates: int, batch: int = 2, features: int = 3, hidden: int = 4) -> list[Any]:
    return [
        arg((3, batch, features)),
        arg((gates * hidden, features), "float32", "small"),
        arg((gates * hidden, hidden), "float32", "small"),
        arg((gates * hidden,)),
        arg((gates * hidden,)),
    ]


# ---------------------------------------------------------------- operators


@nn_operator(
    shapes="(t, b, i) float, (h, i), (h, h), (h), (h), (b, h) -> (t, b, h)", reference=_rnn_reference, tolerance=256,
    cases=(case(*_arguments(1)), case(*_arguments(1)[:3], None, None, arg((2, 4)), "relu", True)),
)  # fmt: skip
def rnn(
    Xs: Tensor,
    Wi: Tensor,
    Wh: Tensor,
    Bi: Tensor | None = None,
    Bh: Tensor | None = None,
    h_init: Tensor | None = None,
    act: Any = "tanh",
    reverse: bool = False,
) -> Tensor:
    """``h[t] = act(Wi @ Xs[t] + Bi + Wh @ h[t - 1] + Bh)``: the states ``(T, B, H)``.

    ``Xs`` is ``(T, B, D)``, ``Wi`` ``(H, D)``, ``Wh`` ``(H, H)``, the biases ``(H,)``, ``h_init`` ``(B, H)``, 0 by default.
    ``act`` is a function of an expression, or ``"tanh"``, ``"sigmoid"`` or ``"relu"``. ``reverse`` begins with the last
    input, and the first state is that after it, as topi has it: ``ops.flip`` gives the order of the inputs. Raises ``TensorExpressionError`` where shapes do not agree.
    """
    layer, function = _Layer("rnn", Xs, Wi, Wh, Bi, Bh, 1, reverse), _activation(act, "act of rnn")
    state, first = layer.state(h_init, layer.hidden, "hidden")
    recurrent = layer.products(state, [0])
    new = te.compute(
        state.shape, lambda t, b, j: function(layer.input(t, b, 0, j) + recurrent(t, b, 0, j)), name="rnn_step"
    )
    return layer.outputs(te.scan(first, new, state, name="rnn_states"))[0]


@nn_operator(
    shapes="(t, b, i) float, (3h, i), (3h, h), (3h), (3h), (b, h) -> (t, b, h)",
    reference=_gru_reference,
    tolerance=256,
    cases=(
        case(*_arguments(3)),
        case(*_arguments(3), arg((2, 4)), reverse=True, linear_before_reset=True, weight_layout="RZH"),
        case(*_arguments(3, 1, 1, 2)[:3]),
    ),
)
def gru(
    Xs: Tensor,
    Wi: Tensor,
    Wh: Tensor,
    Bi: Tensor | None = None,
    Bh: Tensor | None = None,
    h_init: Tensor | None = None,
    f_act: Any = "sigmoid",
    g_act: Any = "tanh",
    reverse: bool = False,
    linear_before_reset: bool = False,
    weight_layout: str = "ZRH",
) -> Tensor:
    """The gated recurrent unit (Cho et al., 2014): the states ``(T, B, H)``.

    ``z, r = f_act(Wi @ x + Bi + Wh @ h + Bh)`` for two gates, ``n = g_act(Wi @ x + Bi + Wh @ (r * h) + Bh)`` for the third,
    ``h = (1 - z) * n + z * h``; with ``linear_before_reset``, ``r * (Wh @ h + Bh)`` in ``n``, as in PyTorch. ``Wi`` is
    ``(3 H, D)``, ``Wh`` ``(3 H, H)``, the biases ``(3 H,)``, with gates in the order of ``weight_layout``; the rest is as
    in :func:`rnn`.
    """
    layer = _Layer("gru", Xs, Wi, Wh, Bi, Bh, 3, reverse)
    f, g = _activation(f_act, "f_act of gru"), _activation(g_act, "g_act of gru")
    z, r, n = _places(weight_layout, "ZRH", "gru")
    state, first = layer.state(h_init, layer.hidden, "hidden")
    needed = (z, r, n) if linear_before_reset else (z, r)
    recurrent = layer.products(state, range(min(needed), max(needed) + 1))

    def gate(t: Any, b: Any, which: int, j: Any) -> Expr:
        return f(layer.input(t, b, which, j) + recurrent(t, b, which, j))

    def reset(t: Any, b: Any, j: Any) -> Expr:
        return gate(t, b, r, j)

    after = None if linear_before_reset else _after_reset(layer, state, reset, n)

    def step(t: Any, b: Any, j: Any) -> Expr:
        inner = reset(t, b, j) * recurrent(t, b, n, j) if after is None else after(t, b, j)
        new, kept = g(layer.input(t, b, n, j) + inner), gate(t, b, z, j)
        return (te.const(1, layer.inner) - kept) * new + kept * state(t - 1, b, j)

    return layer.outputs(te.scan(first, te.compute(state.shape, step, name="gru_step"), state, name="gru_states"))[0]


def _after_reset(layer: _Layer, state: Tensor, reset: Callable[..., Expr], gate: int) -> Callable[..., Expr]:
    """The recurrent product of a gate with the state times ``reset``."""
    kept = te.compute(state.shape, lambda t, b, j: reset(t, b, j) * state(t - 1, b, j), name=f"{layer.name}_reset")
    k = te.reduce_axis((0, state.shape[2]), "k")

    def product(t: Any, b: Any, j: Any) -> Expr:
        return te.sum(kept(t, b, k) * layer.wide(layer.recurrent(gate * layer.hidden + j, k)), axis=k)

    made = te.compute(state.shape, product, name=f"{layer.name}_candidate")
    return lambda t, b, j: layer.biased(made(t, b, j), gate, j)


@nn_operator(
    shapes="(t, b, i) float, (4h, i), (4h, r), (4h), (4h), (b, r), (b, h), (r, h), (h), (h), (h) -> (t, b, r), (t, b, h)",
    reference=_lstm_reference, tolerance=256,
    cases=(
        case(*_arguments(4)), case(*_arguments(4), arg((2, 4)), arg((2, 4)), reverse=True, weight_layout="IOFG"),
        case(*_arguments(4), p_i=arg((4,)), p_f=arg((4,)), p_o=arg((4,))),
        case(
            arg((2, 1, 3)), arg((16, 3), values="small"), arg((16, 2), values="small"), proj=arg((2, 4), values="small")
        ),
    ),
)  # fmt: skip
def lstm(
    Xs: Tensor,
    Wi: Tensor,
    Wh: Tensor,
    Bi: Tensor | None = None,
    Bh: Tensor | None = None,
    h_init: Tensor | None = None,
    c_init: Tensor | None = None,
    proj: Tensor | None = None,
    p_i: Tensor | None = None,
    p_f: Tensor | None = None,
    p_o: Tensor | None = None,
    f_act: Any = "sigmoid",
    g_act: Any = "tanh",
    h_act: Any = "tanh",
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> tuple[Tensor, Tensor]:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997): hidden states ``(T, B, P)`` and cells ``(T, B, H)``.

    With ``i, f, g, o = Wi @ x + Bi + Wh @ h + Bh``: ``c = f_act(f + p_f * c) * c + f_act(i + p_i * c) * g_act(g)`` and
    ``h = f_act(o + p_o * c) * h_act(c)``, projected by ``proj`` ``(P, H)`` where it is given. ``Wi`` is ``(4 H, D)``, ``Wh``
    ``(4 H, P)``, the biases ``(4 H,)``, with gates in the order of ``weight_layout``; the peepholes ``p_i``, ``p_f`` and
    ``p_o`` are ``(H,)``, ``h_init`` ``(B, P)``, ``c_init`` ``(B, H)``. The rest is as in :func:`rnn`.
    """
    layer = _Layer("lstm", Xs, Wi, Wh, Bi, Bh, 4, reverse)
    width = Wh.shape[1]
    if proj is None and not equate(width, layer.hidden):
        raise error(f"Wh {Wh.shape} is of {width} states, and there are {layer.hidden} without proj", "Wh (4h, h)")
    f, g, h = (_activation(a, f"{n} of lstm") for a, n in ((f_act, "f_act"), (g_act, "g_act"), (h_act, "h_act")))
    i_at, f_at, g_at, o_at = _places(weight_layout, "IFGO", "lstm")
    hidden, first_hidden = layer.state(h_init, width, "hidden")
    cell, first_cell = layer.state(c_init, layer.hidden, "cell")
    recurrent = layer.products(hidden, [0, 1, 2, 3])
    peepholes = (p_i, p_f, p_o)

    def gate(t: Any, b: Any, which: int, j: Any, peephole: Any = None, of: Any = None) -> Expr:
        total = layer.input(t, b, which, j) + recurrent(t, b, which, j)
        return total if peephole is None else total + layer.wide(peephole(j)) * of

    def next_cell(t: Any, b: Any, j: Any) -> Expr:
        old = cell(t - 1, b, j)
        kept, taken = f(gate(t, b, f_at, j, peepholes[1], old)), f(gate(t, b, i_at, j, peepholes[0], old))
        return kept * old + taken * g(gate(t, b, g_at, j))

    new_cell = te.compute(cell.shape, next_cell, name="lstm_cell_step")

    def next_hidden(t: Any, b: Any, j: Any) -> Expr:
        value = new_cell(t, b, j)
        return f(gate(t, b, o_at, j, peepholes[2], value)) * h(value)

    new_hidden = te.compute(cell.shape, next_hidden, name="lstm_hidden_step")
    if proj is not None:
        new_hidden = _projected(layer, new_hidden, proj)
    states = te.scan([first_hidden, first_cell], [new_hidden, new_cell], [hidden, cell], name="lstm_states")
    return tuple(layer.outputs(states))  # type: ignore[return-value]


def _projected(layer: _Layer, x: Tensor, proj: Tensor) -> Tensor:
    k = te.reduce_axis((0, layer.hidden), "k")
    return te.compute(
        (*x.shape[:2], proj.shape[0]),
        lambda t, b, j: te.sum(x(t, b, k) * layer.wide(proj(j, k)), axis=k),
        name=f"{layer.name}_projected",
    )
