"""What the model gets wrong, learned from what was measured: a guess of log(measured / predicted), and how sure it is."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Rows = Sequence[Sequence[float]]
_LITTLE = 32  # trials below which importing scikit-learn, seconds of the budget, is not worth it
_FEW = 200  # trials up to which a Gaussian process is fitted; above them, trees


class Learner(Protocol):
    """Regression of the residuals of candidates on their features."""

    def fit(self, rows: Rows, residuals: Sequence[float]) -> None:
        """Learn from measured candidates, a row of features each."""
        ...

    def guess(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The residuals expected of other candidates, and their standard deviations."""
        ...


def learner(seed: int, count: int) -> Learner:
    """A learner for ``count`` trials: of scikit-learn (extra ``tune``) if that is installed and there is enough to learn
    from, else one that needs only NumPy."""
    return Forest(seed) if count >= _LITTLE and importlib.util.find_spec("sklearn") is not None else Nearest()


class Nearest:
    """The mean of the measured residuals, weighted by nearness.

    >>> one = Nearest()
    >>> one.fit([[0.0], [4.0]], [0.0, 1.0])
    >>> one.guess([[0.0], [4.0]])[0].round(2).tolist()
    [0.0, 1.0]
    """

    def fit(self, rows: Rows, residuals: Sequence[float]) -> None:
        self._rows, self._values = np.asarray(rows, float), np.asarray(residuals, float)
        spread = self._rows.std(0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._noise = float(self._values.std()) + 0.05

    def guess(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        given = np.asarray(rows, float)
        apart = (given[:, None, :] - self._rows[None]) / self._scale
        distance = np.sqrt((apart**2).sum(2) / max(1, given.shape[1]))
        weight = np.exp(-0.5 * (distance / 0.35) ** 2) + 1e-9
        total = weight.sum(1)
        return (weight @ self._values) / total, self._noise / np.sqrt(1.0 + total)


class Forest:
    """A Gaussian process for few trials, extremely randomised trees for many; of scikit-learn."""

    def __init__(self, seed: int):
        self._seed = seed
        self._model: Any = None

    def fit(self, rows: Rows, residuals: Sequence[float]) -> None:
        given, values = np.asarray(rows, float), np.asarray(residuals, float)
        self._center, spread = given.mean(0), given.std(0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._model = self._process() if len(values) <= _FEW else self._trees()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about bounds of a kernel: a poor fit is only a poor guess
            self._model.fit((given - self._center) / self._scale, values)

    def guess(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        given = (np.asarray(rows, float) - self._center) / self._scale
        if hasattr(self._model, "estimators_"):
            each = np.stack([tree.predict(given) for tree in self._model.estimators_])
            return each.mean(0), each.std(0) + 0.01
        return self._model.predict(given, return_std=True)

    def _process(self) -> Any:
        from sklearn.gaussian_process import GaussianProcessRegressor  # type: ignore[import-not-found,import-untyped]
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel  # type: ignore[import-not-found,import-untyped]

        # bounds: a fit to few points would else take all of them for noise
        smooth = ConstantKernel(1.0, (0.05, 20.0)) * Matern(1.0, (0.2, 10.0), nu=2.5)
        kernel = smooth + WhiteKernel(0.01, (1e-4, 0.1))
        return GaussianProcessRegressor(kernel, normalize_y=True, random_state=self._seed)

    def _trees(self) -> Any:
        from sklearn.ensemble import ExtraTreesRegressor  # type: ignore[import-not-found,import-untyped]

        return ExtraTreesRegressor(64, min_samples_leaf=2, random_state=self._seed)


def expected_improvement(mean: float, deviation: float, best: float) -> float:
    """How much below ``best`` a normal variable is on average, counting only what is below.

    >>> expected_improvement(1.0, 0.0, 3.0), expected_improvement(5.0, 0.0, 3.0)
    (2.0, 0.0)
    """
    if deviation <= 0.0:
        return max(0.0, best - mean)
    z = (best - mean) / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return (best - mean) * 0.5 * math.erfc(-z / math.sqrt(2.0)) + deviation * density
