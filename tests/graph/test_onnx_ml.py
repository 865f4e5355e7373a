"""Operators of classical models, domain ai.onnx.ml: each row against ``onnx.reference``, at an open number of rows."""

import numpy as np
import pytest

from tir.errors import ModelError
from tir.graph import compile_graph
from tir.importers.onnx import from_onnx

onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

RNG = np.random.default_rng(5)
ROWS, COLUMNS = 7, 4
FLOATS = RNG.normal(size=(ROWS, COLUMNS)).astype("float32")
INTEGERS = RNG.integers(0, 5, (ROWS, COLUMNS))
LOST = np.where(FLOATS > 0.5, np.float32(np.nan), FLOATS)


def model_of(operator, x, results=1, constants=(), **attributes):
    names = [f"y{n}" for n in range(results)]
    node = helper.make_node(operator, ["x", *(f"c{n}" for n in range(len(constants)))], names, domain="ai.onnx.ml", **attributes)  # fmt: skip
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), ["n", *x.shape[1:]])
    held = [onnx.numpy_helper.from_array(a, f"c{n}") for n, a in enumerate(constants)]
    outputs = [onnx.ValueInfoProto(name=name) for name in names]
    graph = helper.make_graph([node], "g", [given], outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])


def agrees(operator, x, results=1, **attributes):
    model = model_of(operator, x, results, **attributes)
    made = compile_graph(from_onnx(model), "interpreter")(x)
    for ours, theirs in zip(
        made if results > 1 else [made], ReferenceEvaluator(model).run(None, {"x": x}), strict=True
    ):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def numbers(*shape):
    return RNG.normal(size=shape).astype("float32").ravel().tolist()


PLAIN = {
    "binarizer": ("Binarizer", FLOATS, {"threshold": 0.2}),
    "scaler": ("Scaler", FLOATS, {"offset": numbers(4), "scale": numbers(4)}),
    "scaler, one": ("Scaler", FLOATS, {"offset": [1.5], "scale": [0.5]}),
    "imputer": ("Imputer", LOST, {"imputed_value_floats": numbers(4), "replaced_value_float": float("nan")}),
    "imputer of integers": ("Imputer", INTEGERS, {"imputed_value_int64s": [9], "replaced_value_int64": 3}),
    "norm max": ("Normalizer", abs(FLOATS), {"norm": "MAX"}),
    "norm 1": ("Normalizer", FLOATS * (FLOATS[:, :1] > 0), {"norm": "L1"}),
    "norm 2": ("Normalizer", FLOATS * (FLOATS[:, :1] > 0), {"norm": "L2"}),
    "columns": ("ArrayFeatureExtractor", FLOATS, {"constants": [np.array([3, 0, 3])]}),
    "one hot": ("OneHotEncoder", INTEGERS, {"cats_int64s": [3, 0, 4]}),
    "labels": ("LabelEncoder", INTEGERS, {"keys_int64s": [2, 0], "values_floats": [0.5, -1.5], "default_float": 7.0}),
    "regression": ("LinearRegressor", FLOATS, {"coefficients": numbers(2, 4), "intercepts": numbers(2), "targets": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_a_row_is_its_reference(name):
    operator, x, attributes = PLAIN[name]
    agrees(operator, x, **attributes)


def test_nan_is_a_key_as_others():
    model = model_of("LabelEncoder", LOST, keys_floats=[LOST[0, 0], float("nan")], values_int64s=[4, 6])
    expected = np.where(np.isnan(LOST), 6, np.where(LOST[0, 0] == LOST, 4, -1))
    np.testing.assert_array_equal(compile_graph(from_onnx(model), "interpreter")(LOST), expected)


@pytest.mark.parametrize("shown", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(("rows", "labels"), [(3, [4, 7, 2]), (1, [3, 9])])
def test_linear_classes(rows, labels, shown):
    given = {"coefficients": numbers(rows, 4), "intercepts": numbers(rows), "classlabels_ints": labels}
    agrees("LinearClassifier", FLOATS, 2, post_transform=shown, **given)


SUPPORT = {"support_vectors": numbers(6, 4), "kernel_params": [0.3, 0.5, 2.0]}


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kind):
    agrees("SVMRegressor", FLOATS, n_supports=6, kernel_type=kind, coefficients=numbers(6), rho=[0.25], **SUPPORT)
    given = {
        "coefficients": numbers(2, 6),
        "vectors_per_class": [2, 1, 3],
        "rho": numbers(3),
        "classlabels_ints": [3, 1, 8],
    }
    agrees("SVMClassifier", FLOATS, 2, kernel_type=kind, **given, **SUPPORT)


def test_support_vectors_of_two_classes():
    given = {"coefficients": numbers(6), "vectors_per_class": [2, 4], "rho": [0.1], "classlabels_ints": [3, 1]}
    agrees("SVMClassifier", FLOATS, 2, kernel_type="RBF", **given, **SUPPORT)
    shares = compile_graph(from_onnx(model_of("SVMClassifier", FLOATS, 2, prob_a=[-1.5], prob_b=[0.2], kernel_type="RBF", **given, **SUPPORT)), "interpreter")(FLOATS)[1]  # fmt: skip
    scores = ReferenceEvaluator(model_of("SVMClassifier", FLOATS, 2, kernel_type="RBF", **given, **SUPPORT)).run(None, {"x": FLOATS})[1][:, 1]  # fmt: skip
    np.testing.assert_allclose(shares[:, 0], 1 / (1 + np.exp(-1.5 * scores + 0.2)), rtol=1e-4)


def forest(depths, modes=("BRANCH_LEQ",)):
    """Lists of the nodes of trees, of which one side is deeper; and trees and nodes of the leaves."""
    nodes, leaves = [], []
    for tree, depth in enumerate(depths):
        for n in range(depth):
            nodes.append((tree, 2 * n, n % COLUMNS, float(RNG.normal()), modes[n % len(modes)], 2 * n + 1, 2 * n + 2))
            nodes.append((tree, 2 * n + 1, 0, 0.0, "LEAF", 0, 0))
            leaves.append((tree, 2 * n + 1))
        nodes.append((tree, 2 * depth, 0, 0.0, "LEAF", 0, 0))
        leaves.append((tree, 2 * depth))
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    return {f"nodes_{name}": list(column) for name, column in zip(names, zip(*nodes))}, leaves


def weighted(leaves, of, ids, weights):
    many = [leaf for leaf in leaves for _ in ids]
    return {f"{of}_treeids": [t for t, _ in many], f"{of}_nodeids": [n for _, n in many],
            f"{of}_ids": list(ids) * len(leaves), f"{of}_weights": weights(len(many))}  # fmt: skip


@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_NEQ"]])
@pytest.mark.parametrize("depths", [(3, 1, 0), (5,)])
def test_trees_of_numbers(modes, depths):
    nodes, leaves = forest(depths, modes)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        given = {**nodes, **weighted(leaves, "target", [0, 1], numbers), "n_targets": 2}
        agrees("TreeEnsembleRegressor", FLOATS, aggregate_function=how, base_values=[0.5, 2.0], **given)


def test_trees_send_nan_where_they_say():
    nodes, leaves = forest((3, 4))
    tracks = [n % 2 for n in range(len(nodes["nodes_nodeids"]))]
    given = {**nodes, **weighted(leaves, "target", [0], numbers), "n_targets": 1, "aggregate_function": "SUM"}
    agrees("TreeEnsembleRegressor", LOST, nodes_missing_value_tracks_true=tracks, **given)


@pytest.mark.parametrize(("ids", "labels", "weights", "shown"), [
    ([0, 1, 2], [5, 3, 8], numbers, "SOFTMAX"), ([0, 1], [3, 8], numbers, "NONE"),
    ([0], [3, 8], lambda n: abs(RNG.normal(size=n) / 4).tolist(), "NONE"), ([0], [3, 8], numbers, "LOGISTIC"),
])  # fmt: skip
def test_trees_of_classes(ids, labels, weights, shown):
    nodes, leaves = forest((2, 3))
    given = {**nodes, **weighted(leaves, "class", ids, weights), "classlabels_int64s": labels}
    agrees("TreeEnsembleClassifier", FLOATS, 2, post_transform=shown, **given)


def test_what_has_no_row_is_refused_with_the_reason():
    texts = model_of("LinearClassifier", FLOATS, 2, coefficients=numbers(2, 4), classlabels_strings=["a", "b"])
    with pytest.raises(ModelError, match="classlabels_strings: texts are no tensors"):
        from_onnx(texts)
    nodes, leaves = forest((2,))
    nodes["nodes_falsenodeids"][2] = 0  # its own grandparent
    circle = model_of("TreeEnsembleRegressor", FLOATS, n_targets=1, **nodes, **weighted(leaves, "target", [0], numbers))
    with pytest.raises(ModelError, match="it takes 1025 steps"):
        from_onnx(circle)
    with pytest.raises(ModelError, match=r"convert with options=\{'zipmap': False\}"):
        from_onnx(model_of("ZipMap", FLOATS, classlabels_int64s=[0, 1, 2, 3]))
