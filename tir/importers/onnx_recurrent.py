"""Rows of recurrent networks: RNN, GRU, LSTM, in one or both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import Value
from ..graph.sizes import Extent
from .making import Unsupported
from .onnx_table import Call, row

_ACTIVATIONS = {"sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu"}


@row("RNN", 7)
def _rnn(c: Call) -> Any:
    def direction(d: _Direction) -> list[Value]:
        (act,) = d.activations("tanh")
        return [c.op("nn.rnn", d.data, d.weights(1), d.weights(2), *d.biases(), d.initial(5), act)]

    return _over_directions(c, direction)


@row("GRU", 7)
def _gru(c: Call) -> Any:
    def direction(d: _Direction) -> list[Value]:
        f, g = d.activations("sigmoid", "tanh")
        after = bool(c.attribute("linear_before_reset", 0))
        return [
            c.op(
                "nn.gru", d.data, d.weights(1), d.weights(2), *d.biases(), d.initial(5), f, g, linear_before_reset=after
            )
        ]

    return _over_directions(c, direction)


@row("LSTM", 7)
def _lstm(c: Call) -> Any:
    if c.attribute("input_forget", 0):
        raise Unsupported("its gates of input and forgetting are coupled (input_forget)")

    def direction(d: _Direction) -> list[Value]:
        f, g, h = d.activations("sigmoid", "tanh", "tanh")
        peepholes = d.parts(7, 3) or (None, None, None)  # of input, output and forgetting
        states = c.op(
            "nn.lstm",
            d.data,
            d.weights(1),
            d.weights(2),
            *d.biases(),
            d.initial(5),
            d.initial(6),
            p_i=peepholes[0],
            p_o=peepholes[1],
            p_f=peepholes[2],
            f_act=f,
            g_act=g,
            h_act=h,
            weight_layout="IOFG",
        )
        return list(states)

    return _over_directions(c, direction)


class _Direction:
    """One direction of a network: number ``at``, over ``data`` ``(T, B, D)``, which is turned round if it is ``reverse``."""

    def __init__(self, c: Call, at: int, data: Value):
        self.c = c
        self.at = at
        self.data = data

    def weights(self, index: int) -> Value:
        """What belongs to this direction of an input whose first axis are the directions."""
        return self.c.one_of(self.c[index], 0, self.at)

    def parts(self, index: int, count: int) -> list[Value] | None:
        """Equal parts of a vector of this direction; None if it is left out."""
        if self.c.get(index) is None:
            return None
        vector = self.weights(index)
        size = vector.shape[0] // count
        return [self.c.op("strided_slice", vector, [n * size], [(n + 1) * size]) for n in range(count)]

    def biases(self) -> Sequence[Value | None]:
        """The bias of the inputs, and that of the states."""
        return self.parts(3, 2) or (None, None)

    def initial(self, index: int) -> Value | None:
        """An initial state ``(B, H)`` of this direction; None if it is left out."""
        value = self.c.get(index)
        if value is None:
            return None
        if self.c.attribute("layout", 0):
            value = self.c.op("transpose", value, (1, 0, 2))
        return self.c.one_of(value, 0, self.at)

    def activations(self, *usual: str) -> list[str]:
        """The functions of this direction."""
        said = self.c.attribute("activations")
        named = usual if said is None else said[self.at * len(usual) : (self.at + 1) * len(usual)]
        if self.c.attribute("activation_alpha") is not None or self.c.attribute("activation_beta") is not None:
            raise Unsupported("its activations have parameters")
        unknown = [name for name in named if name.lower() not in _ACTIVATIONS]
        if unknown or len(named) != len(usual):
            raise Unsupported(f"its activations are {', '.join(named)}; known are {', '.join(_ACTIVATIONS)}")
        return [_ACTIVATIONS[name.lower()] for name in named]


def _over_directions(c: Call, direction: Callable[[_Direction], list[Value]]) -> list[Value]:
    """All states ``(T, directions, B, H)``, then the last one of each kind ``(directions, B, H)``; with ``layout`` 1, the
    batch comes first. ``direction`` gives the states ``(T, B, H)`` of each kind; those behind the end of a sequence that is shorter are 0."""
    batch_first = bool(c.attribute("layout", 0))
    data = c.op("transpose", c[0], (1, 0, 2)) if batch_first else c[0]
    ends = _Ends.of(c, data)
    if c.attribute("clip") is not None:
        raise Unsupported("it clips its sums")
    kind = c.attribute("direction", "forward")
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(kind)
    if backwards is None:
        raise Unsupported(f"direction {kind!r} is none")
    steps, every, last = data.shape[0], [], []
    for at, is_reverse in enumerate(backwards):
        states = direction(_Direction(c, at, _turned(c, data, ends) if is_reverse else data))
        if ends is None:
            last.append([c.sliced(s, [(0, slice(steps - 1, steps))]) for s in states])
        else:
            states = [ends.cut(s) for s in states]
            last.append([ends.last(s) for s in states])
        hidden = _turned(c, states[0], ends) if is_reverse else states[0]
        every.append(c.op("expand_dims", hidden, 1))
    results = [c.joined(every, 1), *(c.joined(each, 0) for each in zip(*last))]
    if batch_first:
        orders = [(2, 0, 1, 3), *[(1, 0, 2)] * (len(results) - 1)]
        results = [c.op("transpose", value, order) for value, order in zip(results, orders)]
    return results


def _turned(c: Call, x: Value, ends: _Ends | None) -> Value:
    return c.op("flip", x, 0) if ends is None else ends.turned(x)


class _Ends:
    """Sequences ``(T, B, …)`` that end after ``lengths`` steps, each after its own."""

    def __init__(self, c: Call, lengths: Value, steps: Extent, batch: Extent):
        self.c = c
        self.batch = batch
        self.lengths = c.of_type(lengths, "int64")
        self.steps = c.op("expand_dims", c.op("arange", 0, steps, 1, "int64"), 1)
        self.is_inside = c.op("less", self.steps, self.lengths)

    @staticmethod
    def of(c: Call, data: Value) -> _Ends | None:
        """None if all sequences are whole."""
        lengths = c.get(4)
        known = None if lengths is None else c.known(lengths)
        is_whole = lengths is None or (known is not None and all(n == data.shape[0] for n in known))
        return None if is_whole else _Ends(c, c[4], *data.shape[:2])

    def turned(self, x: Value) -> Value:
        """Each sequence from its end; what is behind it stays."""
        behind = self.c.op("subtract", self.c.op("subtract", self.lengths, 1), self.steps)
        return self._taken(x, self.c.op("where", self.is_inside, behind, self.steps))

    def cut(self, x: Value) -> Value:
        return self.c.op("where", self.c.op("expand_dims", self.is_inside, 2), x, 0.0)

    def last(self, x: Value) -> Value:
        """The last element of each, ``(1, B, …)``."""
        at = self.c.op("maximum", self.c.op("subtract", self.lengths, 1), 0)
        return self._taken(x, self.c.op("expand_dims", at, 0))

    def _taken(self, x: Value, steps: Value) -> Value:
        """The elements of ``x`` at ``steps`` ``(…, B)`` of each sequence."""
        rows = self.c.op("reshape", x, (x.shape[0] * x.shape[1], x.shape[2]))
        own = self.c.op("arange", 0, self.batch, 1, "int64")
        return self.c.op("take", rows, self.c.op("add", self.c.op("multiply", steps, self.batch), own), 0)
