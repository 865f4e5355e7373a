"""TensorIntrin: a pair of PrimFuncs, the computation of an instruction and its call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import extension
from ..function import PrimFunc
from ..names import resembling


@dataclass(frozen=True)
class TensorIntrin:
    """An instruction for ``tensorize``: ``desc`` is what it computes (one block), ``impl`` how it is called.

    Both take the same buffers in the same order.

    Raises ``ValueError`` when the two signatures differ.

    >>> import tir
    >>> found = tir.TensorIntrin.get("dot_16x4_vnni")
    >>> found.name, [b.shape for b in found.desc.buffer_map.values()]
    ('dot_16x4_vnni', [(4,), (16, 4), (16,)])
    """

    desc: PrimFunc
    impl: PrimFunc
    name: str = ""
    _registry: ClassVar[dict[str, TensorIntrin]] = {}
    _makers: ClassVar[dict[str, Callable[[], tuple[PrimFunc, PrimFunc]]]] = {}

    def __post_init__(self) -> None:
        want, got = self.desc.buffers(), self.impl.buffers()
        if len(want) != len(got):
            raise ValueError(f"desc takes {len(want)} buffers, impl {len(got)}; they must agree")
        for a, b in zip(want, got):
            if a.dtype != b.dtype or a.ndim != b.ndim:
                raise ValueError(
                    f"buffer {a.name} of desc is {a.dtype} of rank {a.ndim}, {b.name} of impl {b.dtype} of rank {b.ndim}"
                )

    def as_python(self) -> str:
        """The name, as errors and traces write it."""
        return f'TensorIntrin.get("{self.name}")' if self.name else "TensorIntrin(…)"

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Add an intrinsic under ``name``. Raises ``ValueError`` if the name is taken, unless ``override``.

        The built-in intrinsics are loaded first, so ``override`` also replaces these.
        """
        TensorIntrin._load()
        if (name in TensorIntrin._registry or name in TensorIntrin._makers) and not override:
            raise ValueError(f"tensor intrinsic {name!r} is already registered; pass override=True to replace it")
        made = TensorIntrin(desc, impl, name)
        TensorIntrin._registry[name] = made
        return made

    @staticmethod
    def register_lazy(name: str, make: Callable[[], tuple[PrimFunc, PrimFunc]]) -> None:
        """As ``register``; ``make`` returns desc and impl when the name is first looked up."""
        if name in TensorIntrin._registry or name in TensorIntrin._makers:
            raise ValueError(f"tensor intrinsic {name!r} is already registered")
        TensorIntrin._makers[name] = make

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic called ``name``. Raises ``KeyError`` with near names, or gives None if ``allow_missing``."""
        TensorIntrin._load()
        found = TensorIntrin._made(name)
        if found is None:
            extension.load(extension.INTRINSICS)
            found = TensorIntrin._made(name)
        if found is None and not allow_missing:
            found = resembling(name, TensorIntrin.list())
            families = sorted({f"{n.split('_')[0]}_…" for n in TensorIntrin.list()})
            known = f"did you mean {', '.join(found)}?" if found else f"TensorIntrin.list() has {', '.join(families)}"
            raise KeyError(f"no tensor intrinsic {name!r}; {known}{extension.missing(extension.INTRINSICS)}")
        return found

    @staticmethod
    def list() -> list[str]:
        """Names of all registered intrinsics, sorted."""
        TensorIntrin._load()
        extension.load(extension.INTRINSICS)
        return sorted({*TensorIntrin._registry, *TensorIntrin._makers})

    @staticmethod
    def _made(name: str) -> TensorIntrin | None:
        """The intrinsic registered under ``name``; one registered lazily is made now."""
        if name not in TensorIntrin._registry and name in TensorIntrin._makers:
            TensorIntrin._registry[name] = TensorIntrin(*TensorIntrin._makers[name](), name)
        return TensorIntrin._registry.get(name)

    @staticmethod
    def _load() -> None:
        """Import the built-in families, which register themselves."""
        from . import amx, cuda, dot_product_common, x86  # noqa: F401


def parsed(handles: str, buffers: str, reads: str, writes: str, desc: str, impl: str) -> tuple[Any, Any]:
    """What an intrinsic computes and how it is called: two functions of the parameters ``handles``, to which the same
    ``buffers`` belong, and with the same regions."""
    from ..script import parse

    params = ", ".join(f"{handle}: T.handle" for handle in handles.split())

    def function(name: str, body: str) -> Any:
        return parse(f"""@T.prim_func
def {name}({params}):
{buffers}    with T.block("root"):
        T.reads({reads})
        T.writes({writes})
{body}""")

    return function("desc", desc), function("impl", impl)
