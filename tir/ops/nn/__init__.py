"""Operators of neural networks: ``ops.nn.conv2d(…)``, found in the files here as those of :mod:`tir.ops` are."""

from __future__ import annotations

from ...extension import load_files
from ..registry import attributes

load_files(__name__)
__getattr__, __dir__ = attributes("nn")
