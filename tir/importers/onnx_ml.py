"""Rows of ONNX's operators of classical models, domain ``ai.onnx.ml``: scalers, encoders, linear models, support vectors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Value
from .making import Unsupported
from .onnx_table import Call, row

ML = "ai.onnx.ml"


@row("Binarizer", domain=ML)
def _binarizer(c: Call) -> Any:
    return c.of_type(c.op("greater", c[0], float(c.attribute("threshold", 0.0))), c[0].dtype)


@row("Scaler", domain=ML)
def _scaler(c: Call) -> Any:
    x = c.of_type(c[0], "float32")
    return c.op("multiply", c.op("subtract", x, floats(c, "offset", 0.0)), floats(c, "scale", 1.0))


@row("Imputer", domain=ML)
def _imputer(c: Call) -> Any:
    kind = "float" if c[0].dtype.is_float else "int64"
    lost = c.attribute(f"replaced_value_{kind}", 0)
    found = c.op("isnan", c[0]) if lost != lost else c.op("equal", c[0], lost)
    instead = np.asarray(attribute(c, f"imputed_value_{kind}s"), str(c[0].dtype))
    return c.op("where", found, c.array(instead), c[0])


@row("Normalizer", domain=ML)
def _normalizer(c: Call) -> Any:
    """Each row divided by its norm; a row of zeros is returned as it is."""
    x, norm = c.of_type(c[0], "float32"), c.attribute("norm", "MAX")
    if norm not in ("MAX", "L1", "L2"):
        raise Unsupported(f"the norm {norm!r} is none of MAX, L1, L2")
    if norm == "MAX":
        size = c.op("max", x, -1, True)
    elif norm == "L1":
        size = c.op("sum", c.op("abs", x), -1, True)
    else:
        size = c.op("sqrt", c.op("sum", c.op("multiply", x, x), -1, True))
    return c.op("divide", x, c.op("where", c.op("equal", size, 0.0), 1.0, size))


@row("ArrayFeatureExtractor", domain=ML)
def _columns(c: Call) -> Any:
    """The elements of the last axis at some places."""
    x = c[0] if len(c[0].shape) > 1 else c.op("reshape", c[0], (1, *c[0].shape))
    return c.op("take", x, c.op("reshape", c[1], (c[1].elements,)), -1)


@row("FeatureVectorizer", domain=ML)
def _vectorizer(c: Call) -> Any:
    return c.joined([c.of_type(c[n], "float32") for n in range(len(c.inputs))], 1)


@row("OneHotEncoder", domain=ML)
def _one_hot(c: Call) -> Any:
    """A last axis with a 1 where an element is the category; zeros for one that is none."""
    categories = c.array(np.asarray(attribute(c, "cats_int64s"), "int64"))
    x = c.op("expand_dims", c.of_type(c[0], "int64"), -1)
    return c.of_type(c.op("equal", x, categories), "float32")


@row("LabelEncoder", 2, domain=ML)
def _label_encoder(c: Call) -> Any:
    """Each element replaced by its value in a table of keys and values."""
    keys, values = (_table(c, name) for name in ("keys", "values"))
    if not len(keys):
        raise Unsupported("its table has no keys")
    same = c.op("equal", c.op("expand_dims", c[0], -1), c.array(keys.astype(str(c[0].dtype))))
    if c[0].dtype.is_float and np.isnan(keys).any():
        absent = c.op("logical_and", c.op("expand_dims", c.op("isnan", c[0]), -1), c.array(np.isnan(keys)))
        same = c.op("logical_or", same, absent)
    found = c.op("take", c.array(values), c.op("argmax", c.of_type(same, "int32"), -1), 0)
    return c.op("where", c.op("any", same, -1), found, c.array(_otherwise(c, values.dtype)))


def _table(c: Call, name: str) -> np.ndarray:
    """The ``keys`` or the ``values`` of a table of numbers."""
    for kind, dtype in (("int64s", "int64"), ("floats", "float32")):
        if c.attribute(f"{name}_{kind}") is not None:
            return np.asarray(c.attribute(f"{name}_{kind}"), dtype)
    return np.asarray(attribute(c, f"{name}_tensor")).reshape(-1)


def _otherwise(c: Call, dtype: Any) -> np.ndarray:
    """The value for elements that are no key."""
    given = c.attribute("default_tensor")
    if given is None:
        given = c.attribute("default_int64", -1) if np.dtype(dtype).kind == "i" else c.attribute("default_float", 0.0)
    return np.asarray(given).reshape(()).astype(dtype)


@row("ZipMap", domain=ML)
def _dictionaries(c: Call) -> Any:
    raise Unsupported("a dictionary for each row is no tensor: convert with options={'zipmap': False}")


# ---------------------------------------------------------------- linear models


@row("LinearRegressor", domain=ML)
def _linear_regressor(c: Call) -> Any:
    return transformed(c, _linear(c))


@row("LinearClassifier", domain=ML)
def _linear_classifier(c: Call) -> Any:
    scores = _linear(c)
    if scores.shape[1] == 1 and len(labels_of(c, "classlabels_ints")) == 2:
        scores = c.op("concatenate", [c.op("negative", scores), scores], 1)
    return classified(c, scores, "classlabels_ints")


def _linear(c: Call) -> Value:
    """A score ``(rows, targets)`` for each row of coefficients."""
    x = c.of_type(c[0], "float32")
    weights = np.asarray(attribute(c, "coefficients"), "float32").reshape(-1, x.shape[1])
    made = c.op("matmul", x, c.array(weights.T))
    return made if c.attribute("intercepts") is None else c.op("add", made, floats(c, "intercepts", 0.0))


@row("SVMRegressor", domain=ML)
def _support_vectors(c: Call) -> Any:
    x = c.of_type(c[0], "float32")
    near = kernel(c, x) if c.attribute("n_supports", 0) else x
    weights = np.asarray(attribute(c, "coefficients"), "float32").reshape(near.shape[1], 1)
    made = c.op("add", c.op("matmul", near, c.array(weights)), floats(c, "rho", 0.0))
    if c.attribute("one_class", 0):
        made = c.op("where", c.op("greater", made, 0.0), 1.0, -1.0)
    return transformed(c, made)


def kernel(c: Call, x: Value) -> Value:
    """How near each row is to each support vector, ``(rows, vectors)``."""
    vectors = np.asarray(attribute(c, "support_vectors"), "float32").reshape(-1, x.shape[1])
    gamma, offset, degree = (float(v) for v in c.attribute("kernel_params") or (0.0, 0.0, 0.0))
    kind = c.attribute("kernel_type", "LINEAR")
    if kind == "RBF":
        apart = c.op("subtract", c.op("expand_dims", x, 1), c.array(vectors))
        return c.op("exp", c.op("multiply", c.op("sum", c.op("multiply", apart, apart), -1), -gamma))
    product = c.op("matmul", x, c.array(vectors.T))
    if kind == "LINEAR":
        return product
    bent = c.op("add", c.op("multiply", product, gamma), offset)
    if kind == "POLY":
        return c.op("power", bent, degree)
    if kind != "SIGMOID":
        raise Unsupported(f"the kernel {kind!r} is none of LINEAR, POLY, RBF, SIGMOID")
    return c.op("tanh", bent)


@row("SVMClassifier", domain=ML)
def _voting(c: Call) -> Any:
    """Of each two classes one gets a vote, by a score of its own; the class with most is the label."""
    labels, x = labels_of(c, "classlabels_ints"), c.of_type(c[0], "float32")
    if not sum(c.attribute("vectors_per_class") or ()):
        raise Unsupported("it has no support vectors")
    pairs = list(itertools.combinations(range(len(labels)), 2))
    scores = c.op("add", c.op("matmul", kernel(c, x), c.array(_deciding(c, pairs))), floats(c, "rho", 0.0))
    votes = np.zeros((2, len(pairs), len(labels)), "float32")  # of those that lose, of those that win
    for n, (i, j) in enumerate(pairs):
        votes[:, n, [j, i]] = np.eye(2)
    wins = c.op("greater", scores, 0.0)
    sides = (c.of_type(each, "float32") for each in (c.op("logical_not", wins), wins))
    lost, won = (c.op("matmul", side, c.array(table)) for side, table in zip(sides, votes))
    label = c.op("take", c.array(labels), c.op("argmax", c.op("add", lost, won), 1), 0)
    if c.attribute("prob_a"):
        return label, _probabilities(c, scores)
    return label, transformed(
        c, c.op("concatenate", [c.op("negative", scores), scores], 1) if len(pairs) == 1 else scores
    )


def _probabilities(c: Call, scores: Value) -> Value:
    """Those of two classes: what the iteration of onnxruntime, which ends at 0.0025, comes to."""
    if scores.shape[1] != 1:
        raise Unsupported("the probabilities of more than two classes are iterated; those of two have a row")
    slope, offset = (float(c.attribute(name)[0]) for name in ("prob_a", "prob_b"))
    share = c.op("sigmoid", c.op("negative", c.op("add", c.op("multiply", scores, slope), offset)))
    return c.op("concatenate", [share, c.op("subtract", 1.0, share)], 1)


def _deciding(c: Call, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """What each support vector counts in the score of each two classes, ``(vectors, pairs)``."""
    counts = c.attribute("vectors_per_class")
    ends = np.cumsum([0, *counts])
    weights = np.asarray(attribute(c, "coefficients"), "float32").reshape(-1, ends[-1])
    made = np.zeros((ends[-1], len(pairs)), "float32")
    for n, (i, j) in enumerate(pairs):
        for own, row_of in ((i, j - 1), (j, i)):
            part = slice(ends[own], ends[own + 1])
            made[part, n] = weights[row_of, part]
    return made


# ---------------------------------------------------------------- what these and the trees have in common


def attribute(c: Call, name: str) -> Any:
    """An attribute that must be there. Raises :class:`Unsupported`, with the reason, where it is not."""
    given = c.attribute(name)
    if given is None:
        texts = [a for a in c.attributes if a.endswith("strings") and c.attributes[a]]
        raise Unsupported(f"{texts[0]}: texts are no tensors" if texts else f"its attribute {name} is left out")
    return given


def floats(c: Call, name: str, default: float) -> Value:
    """Numbers of an attribute as a constant."""
    return c.array(np.asarray(c.attribute(name) or [default], "float32"))


def labels_of(c: Call, name: str) -> np.ndarray:
    """What the classes are called, in order: integers."""
    return np.asarray(attribute(c, name), "int64")


def classified(c: Call, scores: Value, name: str) -> tuple[Value, Value]:
    """The label of the best score of each row, and the scores as the model shows them."""
    labels = labels_of(c, name)
    if scores.shape[1] != len(labels):
        raise Unsupported(f"{scores.shape[1]} scores of {len(labels)} classes")
    label = c.op("take", c.array(labels), c.op("argmax", scores, 1), 0)
    return label, transformed(c, scores)


def transformed(c: Call, scores: Value) -> Value:
    """Scores as ``post_transform`` shows them."""
    kind = c.attribute("post_transform", "NONE")
    shown = {"NONE": lambda x: x, "LOGISTIC": functools.partial(c.op, "sigmoid"), "SOFTMAX": functools.partial(c.op, "nn.softmax", axis=1)}  # fmt: skip
    if kind not in shown:
        raise Unsupported(f"scores are shown as {kind}; {', '.join(shown)} have rows")
    return shown[kind](scores)


def two_scores(c: Call, score: Value, first: Value, labels: Sequence[int], is_second: Value) -> tuple[Value, Value]:
    """The label and both scores where one score decides between two classes."""
    label = c.op("where", is_second, c.array(np.int64(labels[1])), c.array(np.int64(labels[0])))
    return c.op("reshape", label, (score.shape[0],)), transformed(c, c.op("concatenate", [first, score], 1))
