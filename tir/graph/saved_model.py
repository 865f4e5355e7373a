"""Models as files: an object or a library with the weights in it, or beside it; and back as models."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.aot import Extras, Options
from codegen.container import fits, write_bytes
from codegen.cuda import cuda_files as cuda
from codegen.cuda.module import CUDAModule
from codegen.module import LLVMModule, LoadedModule, Module, load

from ..dtype import DType
from ..errors import BuildError
from ..function import PrimFunc
from .model_calls import Model, Parameter
from .sizes import parsed

if TYPE_CHECKING:
    from .compiled_model import CompiledModel

_PARAMETERS = [(str, [str], str)]
_FORM = {
    "inputs": _PARAMETERS,
    "outputs": _PARAMETERS,
    "state": _PARAMETERS,
    "kernels": [str],
    "workspace_bytes": str,
    "weights": {"parameter": str, "bytes": int, "file": str, "digest": str},
}  # of the description of a model
MOST = 1 << 30  # bytes of weights that code may refer to in its own file


@dataclass(frozen=True)
class _Function:
    """A function of a module as it is called in C."""

    func: PrimFunc
    written: frozenset[int]


def save(model: CompiledModel, path: Path, weights: str | Path | None, options: Options, levels: Sequence[str]) -> None:
    """Carry :meth:`CompiledModel.save` out."""
    module = model.module
    if isinstance(module, CUDAModule) and module.target.kind == "cuda":
        if options != Options() or levels:
            raise BuildError("header, threads, checks, cmake and levels are for models compiled for llvm, not for cuda")
        if path.suffix != cuda.SUFFIX:
            raise BuildError(
                f"cannot save to {path.name!r}: a model for cuda is a {cuda.SUFFIX}, with its weights in a file beside it; model.module.save('net.c') writes "
                "its kernels and launches for C"
            )
        weights = path.with_suffix(".weights") if weights is None else Path(weights)
        write_bytes(weights, model.weights.data)
        cuda.write(path, module, {"model": _about(model, weights)})
        return
    if not isinstance(module, LLVMModule):
        raise BuildError(f"a model for {module.target.kind} has no code to save; compile it for llvm or cuda")
    if weights is None and model.weights.nbytes > MOST:
        raise BuildError(
            f"{model.weights.nbytes:,} bytes of weights are too many for a file of code: give a file for them, as weights="
        )
    if weights is not None:
        write_bytes(Path(weights), model.weights.data)
    symbols = {"run": "main", "main": f"{path.stem}_with_workspace"}
    sizes = {"WEIGHTS_BYTES": model.weights.nbytes}
    if isinstance(model.workspace_bytes, int):
        sizes["WORKSPACE_BYTES"] = model.workspace_bytes
    if model.graph.symbols:
        symbols["workspace_bytes"] = f"{path.stem}_workspace_bytes"
    functions = {name: _called(model, name, symbol) for name, symbol in symbols.items()}
    about = _about(model, weights)
    held = {about["weights"]["parameter"]: model.weights} if weights is None else {}
    module.save_functions(functions, path, options, levels, Extras(held, {"model": about}, sizes))


def _about(model: CompiledModel, weights: str | Path | None) -> dict[str, Any]:
    """The description of a model, for its file; ``weights`` is that of its weights, if they are not in it."""
    (*_, held, _) = model.module["main"].func.buffers()
    return {
        **{
            which: [[p.name, list(map(str, p.shape)), str(p.dtype)] for p in parameters]
            for which, parameters in (("inputs", model.inputs), ("outputs", model.outputs), ("state", model.state))
        },
        "kernels": list(model.kernels),
        "workspace_bytes": str(model.workspace_bytes),
        "weights": {
            "parameter": held.name,
            "bytes": model.weights.nbytes,
            "file": "" if weights is None else Path(weights).name,
            "digest": hashlib.sha256(model.weights.data).hexdigest(),
        },
    }


def _called(model: CompiledModel, name: str, symbol: str) -> _Function:
    """A function under a symbol of C. It writes the results, the state, and the workspace if it takes one."""
    func, ends = model.module[name].func, len(model.inputs) + len(model.outputs) + len(model.state)
    written = {k for k, p in enumerate(func.params) if p in func.buffer_map} - {*range(len(model.inputs)), ends}
    return _Function(func.with_attr("global_symbol", symbol), frozenset(written))


class LoadedModel(Model):
    """A model from a file that :meth:`CompiledModel.save` wrote. It has no graph and no program."""

    file: str | Path | None = None  # of the weights, if that was given

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.module.path, self.file)  # pyright: ignore[reportAttributeAccessIssue]


def _again(path: Path, weights: str | Path | None) -> LoadedModel:
    return loaded(load(path), weights)


def loaded(module: Module, weights: str | Path | None) -> LoadedModel:
    """The model of a file of one. ``weights`` is the file of its weights, if that is not where it was, beside it.

    Raises ``BuildError`` for weights of another model, for a file of them that cannot be read, and for a description that is
    none.
    """
    assert isinstance(module, (LoadedModule, CUDAModule)) and module.path is not None
    about = module.about["model"]
    if not fits(about, _FORM):
        raise BuildError(f"{module.path.name} does not describe a model as CompiledModel.save does")
    try:
        inputs, outputs, state = (
            [Parameter(name, tuple(map(parsed, shape)), DType(dtype)) for name, shape, dtype in about[which]]
            for which in ("inputs", "outputs", "state")
        )
        name, size, file, digest = (about["weights"][key] for key in ("parameter", "bytes", "file", "digest"))
        if not file and weights is not None:
            raise BuildError(f"{module.path.name} has its weights in it, and takes no file of them")
        if not file and isinstance(module, CUDAModule):
            raise BuildError(f"{module.path.name} says that it has its weights in it, and has none")
        held = (
            module.held(name, size)
            if isinstance(module, LoadedModule) and not file
            else _mapped(module.path, file, weights, size, digest)
        )
        made = LoadedModel(inputs, outputs, module, held, parsed(about["workspace_bytes"]), about["kernels"], state)
        made.file = None if weights is None else Path(weights).resolve()
        return made
    except (LookupError, TypeError, ValueError) as error:
        raise BuildError(f"{module.path.name} does not describe a model as CompiledModel.save does: {error}") from error


def _mapped(code: Path, name: str, given: str | Path | None, size: int, digest: str) -> np.ndarray:
    """The weights in a file, mapped into memory, which processes share."""
    path = code.parent / Path(name).name if given is None else Path(given)
    try:
        found = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    except (OSError, ValueError) as error:
        raise BuildError(f"{code.name}: its weights {str(path)!r} cannot be read: {error}") from error
    if found.nbytes != size or hashlib.sha256(found.data).hexdigest() != digest:
        raise BuildError(
            f"{path.name} has {found.nbytes:,} bytes that are not the weights of {code.name}, which are {size:,}: they are of "
            "another model, or damaged"
        )
    return found
