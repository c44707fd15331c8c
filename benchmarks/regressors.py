"""Opponents of the LSH models: neighbours, forests, boosting, local lines and a network, each ready to be fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

Array = NDArray[np.float64]
NEIGHBOURS, EXTRA_TREES, BOOSTING = "8-NN", "ExtraTrees", "HistGradientBoosting"
LOCAL_LINES, NETWORK = "local lines", "MLP"


class LocalLines(RegressorMixin, BaseEstimator):
    """A weighted line through the nearest rows, found by a kd-tree: tricube weights, a slight ridge."""

    def __init__(self, n_neighbours: int = 16, ridge: float = 1e-3) -> None:
        self.n_neighbours = n_neighbours
        self.ridge = ridge

    def fit(self, X: Array, y: Array) -> LocalLines:
        """Build the tree."""
        self.tree_, self.X_, self.y_ = cKDTree(X), X, y
        return self

    def predict(self, X: Array) -> Array:
        """Values of the lines at their own points."""
        found: tuple[Any, Any] = self.tree_.query(X, self.n_neighbours)
        distances, near = found
        reach = 1.05 * distances[:, -1:] + 1e-300
        weights = (1 - (distances / reach) ** 3) ** 3
        weights /= weights.sum(axis=1, keepdims=True)
        steps, values = (self.X_[near] - X[:, None]) / reach[:, :, None], self.y_[near]
        centre, level = np.einsum("mk,mkd->md", weights, steps), np.einsum("mk,mk->m", weights, values)
        steps = steps - centre[:, None]
        weighted = steps * weights[:, :, None]
        gram = np.einsum("mkd,mke->mde", weighted, steps) + self.ridge * np.eye(X.shape[1])
        slopes = np.linalg.solve(gram, np.einsum("mkd,mk->md", weighted, values - level[:, None])[:, :, None])[:, :, 0]
        return level - (slopes * centre).sum(axis=1)


class Network(RegressorMixin, BaseEstimator):
    """A ReLU network d-256-256-1 in float32, by Adam with a one-cycle schedule, on standard columns and targets."""

    def __init__(self, epochs: int = 40, batch: int = 256, rate: float = 4e-3, seed: int = 0) -> None:
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.seed = seed

    def fit(self, X: Array, y: Array) -> Network:
        """Train it."""
        import torch

        torch.manual_seed(self.seed)
        self.centre_, self.scale_ = X.mean(axis=0), X.std(axis=0) + 1e-12
        self.level_, self.unit_ = y.mean(), y.std()
        rows, targets = self._rows(X), torch.tensor((y - self.level_) / self.unit_, dtype=torch.float32)[:, None]
        layer, relu = torch.nn.Linear, torch.nn.ReLU
        self.net_ = torch.nn.Sequential(layer(X.shape[1], 256), relu(), layer(256, 256), relu(), layer(256, 1))
        adam = torch.optim.Adam(self.net_.parameters())
        steps = -(-len(X) // self.batch) * self.epochs
        cycle = torch.optim.lr_scheduler.OneCycleLR(adam, self.rate, total_steps=steps)
        for _ in range(self.epochs):
            for part in torch.randperm(len(X)).split(self.batch):
                adam.zero_grad()
                torch.nn.functional.mse_loss(self.net_(rows[part]), targets[part]).backward()
                adam.step()
                cycle.step()
        return self

    def predict(self, X: Array) -> Array:
        """Values, all rows in one go."""
        import torch

        with torch.inference_mode():
            return self.net_(self._rows(X))[:, 0].numpy().astype(np.float64) * self.unit_ + self.level_

    def _rows(self, X: Array) -> Any:
        import torch

        return torch.from_numpy(((X - self.centre_) / self.scale_).astype(np.float32))


def neighbours(n_components: int | None, k: int = 8) -> Any:
    """k-NN with weights by distance, on a kd-tree after PCA."""
    return _after_pca(n_components, KNeighborsRegressor(k, weights="distance", algorithm="kd_tree"))


def others(n_components: int | None, n_neighbours: int, seed: int, *, quick: bool) -> dict[str, Callable[[], Any]]:
    """Makers of the other opponents; trees and lines are favoured by the same PCA, the network sees all columns."""
    n_trees, n_rounds, epochs = (10, 30, 3) if quick else (100, 600, 40)
    return {
        EXTRA_TREES: lambda: _after_pca(n_components, ExtraTreesRegressor(n_trees, random_state=seed, n_jobs=1)),
        BOOSTING: lambda: _after_pca(n_components, HistGradientBoostingRegressor(max_iter=n_rounds, random_state=seed)),
        LOCAL_LINES: lambda: _after_pca(n_components, LocalLines(n_neighbours)),
        NETWORK: lambda: Network(epochs, seed=seed),
    }


def linear_error(train: tuple[Array, Array], test: tuple[Array, Array]) -> float:
    """Mean squared error on test rows of the best linear predictor of the training rows."""
    return float(np.mean((LinearRegression().fit(*train).predict(test[0]) - test[1]) ** 2))


def _after_pca(n_components: int | None, estimator: Any) -> Any:
    return estimator if n_components is None else make_pipeline(PCA(n_components, random_state=0), estimator)
