"""What was saved, back: a module, or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load(path: str | Path, weights: str | Path | None = None) -> Any:
    """A module saved with ``module.save``, or a model saved with ``model.save``, whatever the file is called by now.

    The file is read once and loaded from memory, so a path that was loaded before gives what it holds now. A digest of
    its contents is checked before anything of it is used, which finds damage and not malice: a ``.so`` or a ``.o`` is code,
    and loading or calling it runs that code; what a ``.zip`` holds runs on the GPU when it is called. ``weights`` is the file
    of the weights of a model, if it has one that is no longer called what it was, beside the model.

    Raises ``BuildError`` if the file was not written by ``save`` or is damaged, or has other weights; ``RunError`` if it needs
    CPU features that this machine lacks.

    >>> import tempfile
    >>> import numpy as np
    >>> import tir
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tir.build(tir.library.elementwise.scale_add(2)).save(f"{folder}/kernels.o")
    ...     tir.load(f"{folder}/kernels.o").new(np.array([1, 2], "float32"))
    array([4., 7.], dtype=float32)
    """
    from codegen.module import load as load_module

    from .errors import BuildError

    module = load_module(path)
    if isinstance(module.about.get("model"), dict):
        from .graph.saved_model import loaded

        return loaded(module, weights)
    if weights is not None:
        raise BuildError(f"{Path(path).name} is no model, and has no weights")
    return module
