"""Functions of modules as operators of torch: in graphs of ``torch.compile``, with gradients.

torch is imported when an operator is made; nothing else needs it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from codegen.calls import Function
from codegen.module import Module

from .errors import BuildError, RunError
from .extension import optional
from .functional import Functional, Gradient
from .interp.dlpack import torch_type
from .interp.named_arguments import in_order


def op(
    module: Module | Function, name: str, backward: Module | Function | None = None, mutates: Sequence[str] = ()
) -> Any:
    """A function of a module as the operator ``name`` of torch, as in ``"mine::scale"``.

    It takes the parameters that the function does not write, in order, and returns new tensors for the others, which are
    zeros before the call; parameters of ``mutates`` are passed, and updated in place. The result is a
    ``torch.library.CustomOpDef``: called as it is or by ``torch.ops``, compiled without a break of the graph.

    ``backward`` is a function that makes ``grad_X`` for arrays ``X`` that this one takes. It takes any of what this one
    takes and makes, under the same names, and ``grad_Y`` for what it makes. Without it the operator has no gradient until
    ``register_autograd`` of torch gives it one.

    Raises ``BuildError`` for a name without ``::``, a function that is no operator, and without torch.

    >>> import tir
    >>> double = tir.build(tir.library.elementwise.scale_add(2), "interpreter")
    >>> try:
    ...     tir.torch.op(double, "double")
    ... except tir.BuildError as error:
    ...     print(error)
    'double' is no name of an operator of torch; it has a namespace, as in 'mine::double'
    """
    if not re.fullmatch(r"\w+::\w+", name):
        raise BuildError(
            f"{name!r} is no name of an operator of torch; it has a namespace, as in 'mine::{name or 'f'}'"
        )
    made = Functional.of(module, mutates)
    torch = optional("torch", "operators of torch need torch, which is not installed", "torch", BuildError)
    operator = torch.library.custom_op(
        name,
        lambda *given: _run(torch, made, given),
        mutates_args=tuple(_argument(n) for n in made.mutates),
        device_types=_device(made.function),
        schema=_schema(made),
    )
    operator.register_fake(lambda *given: _fake(torch, made, given))
    if backward is not None:
        _register_gradient(operator, Gradient.between(made, backward), op(backward, f"{name}_backward"))
    return operator


def _device(function: Function) -> str:
    target = getattr(getattr(function, "module", None), "target", None)
    return "cuda" if target is not None and target.kind == "cuda" else "cpu"


def _argument(name: str) -> str:
    """A parameter's name in a schema of torch."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if keyword.iskeyword(plain) or plain[0].isdigit() else plain


def _schema(made: Functional) -> str:
    parts = []
    for name in made.takes:
        dtype = made.parameter(name).dtype
        number = "bool" if dtype.is_bool else "SymInt" if dtype.is_int else "float"
        tensor = f"Tensor(a{len(parts)}!)" if name in made.mutates else "Tensor"
        parts.append(f"{number if made.buffer(name) is None else tensor} {_argument(name)}")
    count = len(made.makes)
    result = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    return f"({', '.join(parts)}) -> {result}"


def _new(torch: Any, made: Functional, given: Sequence[Any], fill: Any) -> list[Any]:
    """The tensors that a call makes."""
    tensors = [g for name, g in zip(made.takes, given) if made.buffer(name) is not None]
    device = tensors[0].device if tensors else _device(made.function)
    known = {n: g if made.buffer(n) is None else g.shape for n, g in zip(made.takes, given)}
    types = [torch_type(torch, made.made(name).dtype) for name in made.makes]
    return [fill(shape, dtype=t, device=device) for shape, t in zip(made.shapes(known), types)]


def _run(torch: Any, made: Functional, given: Sequence[Any]) -> Any:
    _require_tensors(torch, made, given)
    passed = {}
    for name, value in zip(made.takes, given):
        buffer = made.buffer(name)
        if buffer is not None:
            value = value.detach()
            value = value if name in made.mutates or buffer.strides else value.contiguous()
        passed[name] = value
    results = _new(torch, made, given, torch.zeros)
    made.function(*in_order(made.function.func, (), {**passed, **dict(zip(made.makes, results))}))
    return _given_back(results)


def _fake(torch: Any, made: Functional, given: Sequence[Any]) -> Any:
    """What a call makes, without running it."""
    _require_tensors(torch, made, given)
    return _given_back(_new(torch, made, given, torch.empty))


def _require_tensors(torch: Any, made: Functional, given: Sequence[Any]) -> None:
    """Raise ``RunError`` for a tensor of another type or number of dimensions, of which no result can be made."""
    for name, value in zip(made.takes, given):
        buffer = made.buffer(name)
        if buffer is None:
            continue
        want, rank = torch_type(torch, buffer.dtype), buffer.ndim + (buffer.dtype.lanes > 1)
        if value.dtype != want or value.dim() != rank:
            raise RunError(
                f"{made.function.func.name}: `{name}` is of {want} with {rank} dimensions, "
                f"got {value.dtype} with {value.dim()}"
            )


def _given_back(results: list[Any]) -> Any:
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _register_gradient(operator: Any, gradient: Gradient, run: Any) -> None:
    forward = gradient.forward

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if len(forward.makes) > 1 else (output,)
        values = dict(zip((*forward.takes, *forward.makes), (*inputs, *outputs)))
        arrays = [n for n in gradient.keeps if forward.buffer(n) is not None]
        ctx.save_for_backward(*(values[n] for n in arrays))
        ctx.numbers = {n: values[n] for n in gradient.keeps if n not in arrays}
        ctx.arrays = arrays

    def back(ctx: Any, *gradients: Any) -> Any:
        kept = {**dict(zip(ctx.arrays, ctx.saved_tensors)), **ctx.numbers}
        made = run(*gradient.arguments(kept, gradients))
        return tuple(gradient.in_order(made if len(gradient.of.makes) > 1 else (made,)))

    operator.register_autograd(back, setup_context=keep)
