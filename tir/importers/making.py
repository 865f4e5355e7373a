"""What importers have in common: how rows make nodes of a graph, and the table of what cannot be imported."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..dtype import DType
from ..errors import ModelError, TirError
from ..graph import Builder, Node, Value
from ..graph.graph import mapped, results, values_in, with_sizes
from ..graph.graph_passes import evaluate
from ..graph.sizes import Extent, Size, is_fixed, least, most
from ..ops import registry
from ..ops.promotion import wide

MOST = 1 << 25  # elements of a constant that a row makes
MOST_STEPS = 1024  # of one loop
KNOWN = 4096  # elements of a tensor that is computed at import, if what it is computed from is known
LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}  # of images, by their axes
NO_ROW = "there is no row for this operator"

Fault = tuple[str, str, int, str, str]  # operator, version, count, first node, why it cannot be imported


class Unsupported(Exception):
    """What a row cannot import, with the reason."""


class Unknown(Unsupported):
    """What a row cannot import as long as ``inputs`` of the model, by name, are not known."""

    def __init__(self, why: str, inputs: Sequence[str]):
        super().__init__(why)
        self.inputs = tuple(inputs)


FAULTS = (TirError, Unsupported, TypeError, ValueError, AssertionError, KeyError, IndexError)  # of one node


def reason(error: Exception) -> str:
    """Why a node cannot be imported, and what would be legal where the error says so, in one line."""
    rule, legal = getattr(error, "rule", "") or str(error), getattr(error, "legal", "")
    lines = [*rule.splitlines()[:1], *(f"legal: {line}" for line in legal.splitlines()[:1])]
    return "; ".join(lines) or type(error).__name__


def require_few(steps: int) -> None:
    """Raise :class:`Unsupported` for a loop of too many steps to be written one by one."""
    if steps > MOST_STEPS:
        raise Unsupported(f"it takes {steps} steps; at most {MOST_STEPS} are written one by one")


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises ``ModelError`` for one that is none."""
    if not -rank <= axis < rank:
        raise ModelError(f"axis {axis} of a tensor of {rank} dimensions")
    return axis % rank


_ALL = (1 << 31) - 1  # from here on the end of a slice stands for that of the axis


def place_of(given: Any, extent: Extent, default: Extent) -> Extent:
    """The begin or the end of a slice, counted from the front."""
    if given is None or (isinstance(given, int) and given >= _ALL):
        return default
    return extent + given if given < 0 else given


def broadcast(*shapes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The shape that tensors of ``shapes`` have together. Raises :class:`Unsupported` for sizes that are not known to be equal."""
    rank = max(map(len, shapes))
    found: list[Extent] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1 and found[axis] not in (1, size):
                raise Unsupported(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
            found[axis] = found[axis] if size == 1 else size
    return tuple(found)


class Faults:
    """The nodes that cannot be imported, by operator, version and reason."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str, str], list[str]] = {}
        self._inputs: dict[str, None] = {}  # that would have to be known, in order
        self._only_unknown = True

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, operator: str, version: str, why: str, *titles: str, inputs: Sequence[str] | None = None) -> None:
        """More nodes, ``titles``, for which ``inputs`` of the model would have to be known; None: that would not do."""
        self._inputs |= dict.fromkeys(inputs or ())
        self._only_unknown &= inputs is not None
        self._nodes.setdefault((operator, version, why), []).extend(titles)

    def include(self, other: Faults) -> None:
        """The nodes of another import, too."""
        for about, titles in other._nodes.items():
            self.add(*about, *titles)

    def titles(self) -> set[str]:
        """All nodes."""
        return {title for titles in self._nodes.values() for title in titles}

    def rows(self) -> list[Fault]:
        """A row for each operator and reason, the most frequent first."""
        rows = [(op, version, len(nodes), nodes[0], why) for (op, version, why), nodes in self._nodes.items()]
        return sorted(rows, key=lambda r: (-r[2], r[0]))

    def error(self) -> ModelError:
        """All of them as one error."""
        rows, needs = self.rows(), tuple(self._inputs) if self._only_unknown else ()
        count = sum(n for _, _, n, _, _ in rows)
        return ModelError(
            f"{'1 node' if count == 1 else f'{count} nodes'} of the model cannot be imported", rows, needs
        )


# operators that mean another thing for sizes than NumPy says; what is not known raises an error
_OF_SIZES: Mapping[str, Callable[..., Any]] = {
    "astype": lambda x, dtype: x if DType(dtype).is_int and DType(dtype).bits >= 32 else x.astype(str(dtype)),
    "equal": np.frompyfunc(lambda a, b: not a - b, 2, 1),
    "not_equal": np.frompyfunc(lambda a, b: bool(a - b), 2, 1),
}


class Making:
    """What a row makes nodes with: ``builder`` is that of the graph, ``label`` a name for constants."""

    def __init__(self, builder: Builder, label: str):
        self.builder = builder
        self.label = label

    def known(self, value: Value) -> np.ndarray | None:
        """The elements of a value that is a constant, or computed of sizes: those are integers and sizes; None of others."""
        return self.builder.constants.get(value, self.builder.known.get(value))

    def op(self, operator: str, *arguments: Any, **attributes: Any) -> Any:
        """The value of an operator of ``tir.ops``, or its values: computed now if all that it needs is known and small."""
        bound = registry.find(operator).signature.bind(*arguments, **attributes).arguments
        inputs = tuple(values_in(bound.values()))
        of_sizes: list[Size] = []
        with_sizes(tuple(bound.values()), of_sizes.append)
        if not of_sizes and all(self.known(v) is not None and v.elements <= KNOWN for v in inputs):
            made = results(operator, bound)
            if sum(math.prod(shape) for shape, _ in made) <= KNOWN:
                if not all(v in self.builder.constants for v in inputs):
                    return self._of_sizes(operator, bound) or self.builder.call(operator, *arguments, **attributes)
                outputs = tuple(Value(f"out{n}", *each) for n, each in enumerate(made))
                arrays = evaluate(Node(operator, bound, outputs), self.builder.constants)
                values = tuple(self.array(array) for array in arrays)
                return values[0] if len(values) == 1 else values
        return self.builder.call(operator, *arguments, **attributes)

    def _of_sizes(self, operator: str, arguments: Mapping[str, Any]) -> Value | None:
        """The result of an operator on values that are computed of sizes, by its NumPy reference; None if that cannot be told."""
        ((shape, dtype), *others) = results(operator, arguments)
        if others or not (dtype.is_int or dtype.is_bool):
            return None
        bound = registry.find(operator).signature.bind_partial()
        bound.arguments.update({k: mapped(a, self.known) for k, a in arguments.items()})
        reference = _OF_SIZES.get(operator, registry.find(operator).reference)
        try:
            made = np.asarray(reference(*bound.args, **bound.kwargs), object)
        except (TypeError, ValueError, AttributeError, ModelError):
            return None
        if made.shape != shape or not all(isinstance(n, (int, np.integer, np.bool_, Size)) for n in made.flat):
            return None
        return self.numbers(made, str(dtype))

    def numbers(self, given: Any, dtype: str = "int64") -> Value:
        """An array of integers and sizes: a constant if all are integers."""
        array = np.asarray(given, object)
        if is_fixed(*array.flat):
            return self.array(array.astype(dtype))
        parts = [self.builder.call("arange", n, n + 1, 1, dtype) for n in array.flat]
        whole = parts[0] if len(parts) == 1 else self.builder.call("concatenate", parts, 0)
        value = whole if array.ndim == 1 else self.builder.call("reshape", whole, array.shape)
        self.builder.known[value] = array
        return value

    def room(self, *sizes: int, most: int = MOST) -> tuple[int, ...]:
        """The sizes of a constant that is made here. Raises :class:`Unsupported` if they are none, or too large."""
        if min(sizes, default=0) < 0 or math.prod(sizes) > most:
            raise Unsupported(f"it makes a constant of shape {list(sizes)}; at most {most} elements are made at import")
        return sizes

    def array(self, array: Any) -> Value:
        """A constant."""
        return self.builder.constant(array, self.label)

    # ---------------------------------------------------------------- what several operators are made of

    def places(self, indices: Value, size: Extent) -> Value:
        """Indices of the elements of an axis, counted from the front. Raises :class:`Unsupported` for one that is known to be outside."""
        known = self.known(indices)
        if known is not None and is_fixed(size, *known.flat):
            wrong = known[(known < -size) | (known >= size)]
            if wrong.size:
                raise Unsupported(f"index {wrong.flat[0]} is outside of an axis of {size} elements")
        return self.from_front(indices, size)

    def from_front(self, indices: Value, size: Extent) -> Value:
        """Indices, of which negative ones count from the end, counted from the front."""
        known = self.known(indices)
        if known is None or (isinstance(size, Size) and (known < 0).any()):
            return self.op("where", self.op("less", indices, 0), self.op("add", indices, size), indices)
        return (
            indices if (known >= 0).all() else self.array(np.where(known < 0, known + size, known).astype(known.dtype))
        )

    def sliced(self, x: Value, slices: Iterable[tuple[int, slice]]) -> Value:
        """The part of a tensor that Python's slices along some axes take."""
        begin, end, step, used = [], [], [], []
        inside: list[
            tuple[int, Extent, Extent]
        ] = []  # along axes of symbolic sizes, or up to such: axis, begin and end
        for given, each in slices:
            axis = axis_of(given, len(x.shape))
            extent = x.shape[axis]
            if isinstance(extent, Size) or not is_fixed(each.start, each.stop):
                stride = each.step or 1
                if stride == -1 and place_of(each.start, 0, -1) == -1 and (each.stop is None or -each.stop >= _ALL):
                    x = self.op("flip", x, axis)
                    continue
                if stride < 0:
                    raise Unsupported(f"steps of {stride} along an axis of {extent} elements")
                first, last = place_of(each.start, extent, 0), place_of(each.stop, extent, extent)
                if isinstance(each.stop, int) and each.stop >= 0:
                    last = least(last, extent)
                if stride > 1:
                    count = most((last - first + stride - 1) // stride, 0)
                    places = self.op("multiply", self.op("arange", 0, count, 1, "int64"), stride)
                    x = self.op("take", x, self.op("add", places, first), axis)
                elif (first, last) != (0, extent):
                    inside.append((axis, first, last))
                continue
            first, last, stride = each.indices(extent)
            if (first, last, stride) != (0, extent, 1):
                begin.append(first)
                end.append(last if last >= 0 else -extent - 1)
                step.append(stride)
                used.append(axis)
        if inside:
            axes, first, last = zip(*inside)
            x = self.op("strided_slice", x, first, last, None, axes, "inside")
        return self.op("strided_slice", x, begin, end, step, axes=used) if used else x

    def parts(self, x: Value, axis: int, sizes: Sequence[Extent]) -> list[Value]:
        """Parts of these sizes along an axis, one after another."""
        ends = [*accumulate(sizes, initial=0)]
        return [self.sliced(x, [(axis, slice(*each))]) for each in zip(ends, ends[1:])]

    def one_of(self, x: Value, axis: int, at: int) -> Value:
        """The elements at one place of an axis, which may be counted from its end, without the axis."""
        extent = x.shape[axis]
        if isinstance(extent, Size):
            first = at if at >= 0 else extent + at
            row = self.op("strided_slice", x, [first], [first + 1], None, [axis], "inside")
        else:
            at = axis_of(at, extent)
            row = self.op("strided_slice", x, [at], [at + 1], [1], axes=[axis]) if extent > 1 else x
        return self.op("reshape", row, (*x.shape[:axis], *x.shape[axis + 1 :]))

    def padded(self, x: Value, widths: Sequence[tuple[int, int]], mode: str, value: Any) -> Value:
        """A tensor with elements added before and after along each axis; of negative widths, taken away."""
        x = self.sliced(
            x, [(n, slice(max(-b, 0), min(e, 0) or None)) for n, (b, e) in enumerate(widths) if min(b, e) < 0]
        )
        widths = [(max(b, 0), max(e, 0)) for b, e in widths]
        if not any(b or e for b, e in widths):
            return x
        if mode == "constant":
            value = float(value) if x.dtype.is_float else bool(value) if x.dtype.is_bool else int(value)
            return self.op("pad", x, widths, "constant", value)
        return self.op("pad", x, widths, mode)

    def joined(self, parts: Sequence[Value], axis: int) -> Value:
        """Tensors one after another along an axis; those that have nothing there are left out."""
        kept = [p for p in parts if p.shape[axis] != 0] or parts[:1]
        return kept[0] if len(kept) == 1 else self.op("concatenate", kept, axis)

    def summed(self, then: Callable[[Value], Value] | None, operator: str, *operands: Any, **more: Any) -> Value:
        """Products of ``operands``, and what is made of them in the type in which they are added up: narrow floats are rounded after that."""
        made, sums = operands[0].dtype, wide(operands[0].dtype)
        if then is None or made == sums or any(x.dtype != made for x in operands[1:] if isinstance(x, Value)):
            product = self.op(operator, *operands, **more)
            return product if then is None else then(product)
        return self.of_type(then(self.op(operator, *operands, out_dtype=sums, **more)), made)

    def times(self, x: Value, factor: float) -> Value:
        """A tensor times a number, which is one of its type."""
        return x if factor == 1 else self.op("multiply", x, float(factor) if x.dtype.is_float else int(factor))

    def shaped(self, x: Value, sizes: Sequence[Extent]) -> Value:
        """The same elements in another shape; one size may be -1, which follows from the others."""
        wanted = list(sizes)
        if -1 in wanted:
            rest = math.prod(n for n in wanted if n != -1)
            if wanted.count(-1) > 1 or not rest or x.elements % rest:
                raise Unsupported(f"{list(x.shape)} does not become {wanted}")
            wanted[wanted.index(-1)] = x.elements // rest
        return x if x.shape == tuple(wanted) else self.op("reshape", x, tuple(wanted))

    def along(self, x: Value, axis: int, rank: int) -> Value:
        """The elements of a tensor along an axis of ``rank``, of which the others have one element."""
        return self.shaped(x, (*[1] * axis, x.elements, *[1] * (rank - axis - 1)))

    def grid_sampled(self, x: Value, grid: Value, mode: str, padding: str, aligned: Any) -> Value:
        """Images at the places of a grid, whose last axis is that of the coordinates."""
        rank = len(grid.shape)
        turned = self.op("transpose", grid, (0, rank - 1, *range(1, rank - 1)))
        return self.op("image.grid_sample", x, turned, mode, LAYOUTS[rank - 2], padding, bool(aligned))

    def of_type(self, x: Value, dtype: Any) -> Value:
        """The same elements in a type."""
        return x if x.dtype == dtype else self.op("astype", x, dtype)

    def added(self, bias: Value | None, rank: int = 0) -> Callable[[Value], Value] | None:
        """The addition of a number for each channel of images of ``rank`` axes, or for each column; None if there are none."""

        def add(made: Value) -> Value:
            assert bias is not None
            each = self.op("reshape", bias, (bias.elements, *[1] * rank)) if rank else bias
            return self.op("add", made, self.of_type(each, made.dtype))

        return add if bias is not None else None
