"""Tensors as other libraries have them: capsules of DLPack with elements of any type."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tir.interp.dlpack import _DLTensor

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Foreign:
    """A tensor as another library has it: ``bits`` seen as elements of a DLPack type code."""

    def __init__(self, bits: np.ndarray, code: int, device: int = 1):
        self.bits, self.code, self.device = bits, code, device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **_: Any):
        bits, n = self.bits, self.bits.ndim
        managed = Managed()
        self.shape = (ctypes.c_int64 * n)(*bits.shape)
        self.strides = (ctypes.c_int64 * n)(*(s // bits.itemsize for s in bits.strides))
        tensor = managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = bits.ctypes.data - 32, self.device, n
        tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset = self.code, bits.itemsize * 8, 1, 32
        tensor.shape, tensor.strides = self.shape, self.strides
        self.managed = managed
        return NEW(ctypes.addressof(managed), b"dltensor", None)
