"""Tensors as other libraries have them, capsules of DLPack with elements of any type, and a program that copies them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import tir
from tir.interp.dlpack import _DLTensor
from tir.script import parse

COPY = """
@T.prim_func
def copy(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "{0}")
    B = T.match_buffer(b, (n,), "{0}")
    for i in range(n):
        B[i] = A[i]
"""

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


_HANDED_OUT: list[Any] = []  # for good: an array made of a capsule reads it when it is freed, maybe after the tensor


class Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Foreign:
    """A tensor as another library has it: ``held`` seen as elements of a DLPack type code, of ``bits`` in each of the
    ``lanes``; without, of the size of those of ``held``."""

    def __init__(self, held: np.ndarray, code: int, device: int = 1, bits: int = 0, lanes: int = 1):
        self.held, self.code, self.device = held, code, device
        self.bits, self.lanes = bits or 8 * held.itemsize, lanes

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **_: Any):
        held, n = self.held, self.held.ndim
        managed = Managed()
        shape = (ctypes.c_int64 * n)(*held.shape)
        strides = (ctypes.c_int64 * n)(*(s // held.itemsize for s in held.strides))
        tensor = managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = held.ctypes.data - 32, self.device, n
        tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset = self.code, self.bits, self.lanes, 32
        tensor.shape, tensor.strides = shape, strides
        _HANDED_OUT.append((managed, shape, strides, held))
        return NEW(ctypes.addressof(managed), b"dltensor", None)


def copy_program(dtype: str) -> tir.PrimFunc:
    """Copies a vector of ``dtype``, of any length."""
    return parse(COPY.format(dtype))
