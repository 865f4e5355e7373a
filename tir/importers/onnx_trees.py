"""Rows of ONNX's ensembles of decision trees: a step from node to child for each level, in all trees and rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph import Value
from .making import Unsupported, require_few
from .onnx_ml import ML, attribute, classified, floats, labels_of, transformed, two_scores
from .onnx_table import Call, row

_TESTS = {"BRANCH_LEQ": "less_equal", "BRANCH_LT": "less", "BRANCH_GTE": "greater_equal", "BRANCH_GT": "greater",
          "BRANCH_EQ": "equal", "BRANCH_NEQ": "not_equal"}  # fmt: skip


@dataclass(frozen=True)
class Trees:
    """The nodes of all trees one after another; both children of a leaf are itself."""

    children: np.ndarray  # of node n: 2 n where its test fails, 2 n + 1 where it holds
    features: np.ndarray  # the column that is tested
    limits: np.ndarray
    modes: np.ndarray  # the operator of the test; that of a leaf is one of the others
    absent: np.ndarray  # whether NaN passes
    roots: np.ndarray
    places: dict[tuple[int, int], int]  # tree, node -> place

    @property
    def depth(self) -> int:
        """The steps from a root to the farthest leaf. Raises :class:`Unsupported` where nodes are their own parents."""
        level, steps = self.roots, 0
        while (inner := level[self.children[2 * level] != level]).size:
            level, steps = np.unique(self.children[np.r_[2 * inner, 2 * inner + 1]]), steps + 1
            require_few(steps)
        return steps


def _trees(c: Call) -> Trees:
    """The trees of a node, from its lists of nodes."""
    owners, numbers = attribute(c, "nodes_treeids"), attribute(c, "nodes_nodeids")
    places = {each: n for n, each in enumerate(zip(owners, numbers))}
    named = [c.attribute("nodes_modes")[n] for n in range(len(owners))]
    leaf = np.array([m == "LEAF" for m in named])
    if unknown := set(named) - {*_TESTS, "LEAF"}:
        raise Unsupported(f"the test {min(unknown)!r} has no row")
    children = np.repeat(np.arange(len(owners)), 2)
    for n in np.flatnonzero(~leaf):
        for side, name in enumerate(("nodes_falsenodeids", "nodes_truenodeids")):
            children[2 * n + side] = places[owners[n], attribute(c, name)[n]]
    kept = next((m for m in named if m != "LEAF"), "BRANCH_LEQ")
    modes = np.array([_TESTS[kept if m == "LEAF" else m] for m in named])
    limits = c.attribute("nodes_values")
    limits = np.asarray(attribute(c, "nodes_values_as_tensor") if limits is None else limits).reshape(-1)
    absent = np.asarray(c.attribute("nodes_missing_value_tracks_true") or [0] * len(owners), bool)
    features = np.where(leaf, 0, attribute(c, "nodes_featureids"))
    roots = np.array([owners.index(t) for t in dict.fromkeys(owners)])
    return Trees(children, features, limits, modes, absent & ~leaf, roots, places)


def _leaves(c: Call, trees: Trees, x: Value) -> Value:
    """The leaf that each row ends at in each tree, ``(rows, trees)``."""
    tables = {
        name: np.asarray(given, kind)
        for name, given, kind in (
            ("features", trees.features, "int32"),
            ("limits", trees.limits, str(x.dtype)),
            ("absent", trees.absent, bool),
        )  # fmt: skip
    }
    kinds = sorted(set(trees.modes))
    children = c.array(trees.children.astype("int32"))
    at = c.array(trees.roots.astype("int32"))
    for step in range(max(trees.depth, 1)):
        read = {name: c.op("take", c.array(table), at, 0, mode="fast") for name, table in tables.items()}
        column = read["features"]
        value = c.op("take", x, column, 1, min(step, 1))
        passes = c.op(kinds[0], value, read["limits"])
        for kind in kinds[1:]:
            has = c.op("take", c.array(trees.modes == kind), at, 0, mode="fast")
            passes = c.op("where", has, c.op(kind, value, read["limits"]), passes)
        if trees.absent.any():
            passes = c.op("logical_or", passes, c.op("logical_and", c.op("isnan", value), read["absent"]))
        at = c.op("take", children, c.op("add", c.op("multiply", at, 2), c.of_type(passes, "int32")), 0, mode="fast")
    return at


def _weights(c: Call, trees: Trees, of: str, count: int) -> np.ndarray:
    """What each leaf adds to each of ``count`` scores."""
    given = c.attribute(f"{of}_weights")
    given = attribute(c, f"{of}_weights_as_tensor") if given is None else given
    made = np.zeros((len(trees.modes), count), "float32")
    targets = attribute(c, f"{of}_ids")
    for n, each in enumerate(zip(attribute(c, f"{of}_treeids"), attribute(c, f"{of}_nodeids"))):
        made[trees.places[each], targets[n] if count > 1 else 0] += np.asarray(given).reshape(-1)[n]
    return made


def _reduced(c: Call, trees: Trees, weights: np.ndarray, how: str) -> Value:
    """The sum, or another reduction, over the trees, ``(rows, scores)``."""
    x = c[0] if c[0].dtype == "float64" else c.of_type(c[0], "float32")
    found = c.op("take", c.array(weights), _leaves(c, trees, x), 0, mode="fast")
    return c.op(how, found, 1)


@row("TreeEnsembleRegressor", domain=ML)
def _regressor(c: Call) -> Any:
    trees, how = _trees(c), c.attribute("aggregate_function", "SUM")
    names = {"SUM": "sum", "AVERAGE": "mean", "MIN": "min", "MAX": "max"}
    if how not in names:
        raise Unsupported(f"trees are put together by {how}; {', '.join(names)} have rows")
    weights = _weights(c, trees, "target", c.attribute("n_targets", 1))
    return transformed(c, _with_base(c, _reduced(c, trees, weights, names[how])))


@row("TreeEnsembleClassifier", domain=ML)
def _classifier(c: Call) -> Any:
    trees, labels = _trees(c), labels_of(c, "classlabels_int64s")
    targets: Sequence[int] = attribute(c, "class_ids")
    if len(labels) != 2 or len(set(targets)) > 1:
        scores = _with_base(c, _reduced(c, trees, _weights(c, trees, "class", len(labels)), "sum"))
        return classified(c, scores, "classlabels_int64s")
    weights = _weights(c, trees, "class", 1)
    base = c.attribute("base_values")
    score = _reduced(c, trees, weights, "sum")
    score = score if base is None else c.op("add", score, float(base[-1]))
    is_share = bool((weights >= 0).all())
    first = c.op("subtract", 1.0, score) if is_share else c.op("negative", score)
    return two_scores(c, score, first, labels.tolist(), c.op("greater", score, 0.5 if is_share else 0.0))


def _with_base(c: Call, scores: Value) -> Value:
    return scores if c.attribute("base_values") is None else c.op("add", scores, floats(c, "base_values", 0.0))
