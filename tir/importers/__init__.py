"""Models of other programs as graphs of :mod:`tir.graph`: ``tir.importers.onnx``."""
