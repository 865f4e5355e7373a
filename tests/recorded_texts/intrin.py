"""Every tensor intrinsic: what it computes, and how it is called."""

from __future__ import annotations

from functools import partial

from tir.intrin import TensorIntrin

from .stages import Texts

OWN = ("amx", "dot", "dp4a", "interleave", "mma", "transpose", "wmma")  # families; tests register others


def intrinsic(name: str) -> Texts:
    found = TensorIntrin.get(name)
    assert found is not None
    yield "desc", found.desc.script()
    yield "impl", found.impl.script()


CASES = {name: partial(intrinsic, name) for name in TensorIntrin.list() if name.partition("_")[0] in OWN}
