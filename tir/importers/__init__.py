"""Models of other programs as graphs of :mod:`tir.graph`: ``tir.importers.onnx`` and ``tir.importers.torch``."""
