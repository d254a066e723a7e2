"""Linear classifiers on sparse features with L2 regularisation, fitted by L-BFGS. They need numpy alone."""
import collections

import numpy as np


class SparseMatrix:
    """[rows, columns] by the row, column and value of each entry."""

    def __init__(self, rows, columns, values, shape):
        self.rows, self.columns, self.values, self.shape = rows, columns, values, shape

    @classmethod
    def of_counts(cls, counters, width):
        """A row for each counter, whose keys are columns."""
        rows = np.repeat(np.arange(len(counters)), [len(counter) for counter in counters])
        columns = np.array([column for counter in counters for column in counter], int)
        values = np.array([count for counter in counters for count in counter.values()], float)
        return cls(rows, columns, values, (len(counters), width))

    def with_values(self, values):
        return SparseMatrix(self.rows, self.columns, values, self.shape)

    def binary(self):
        return self.with_values(np.ones(len(self.values)))

    def with_unit_rows(self):
        """Rows of Euclidean length 1."""
        lengths = np.sqrt(np.bincount(self.rows, self.values**2, self.shape[0]))
        return self.with_values(self.values / lengths[self.rows])

    def column_sums(self):
        return np.bincount(self.columns, self.values, self.shape[1])

    def times(self, dense):
        """[rows, k] = self · dense [columns, k]"""
        return np.stack([np.bincount(self.rows, self.values * k[self.columns], self.shape[0]) for k in dense.T], 1)

    def transposed_times(self, dense):
        """[columns, k] = selfᵀ · dense [rows, k]"""
        return np.stack([np.bincount(self.columns, self.values * k[self.rows], self.shape[1]) for k in dense.T], 1)


# Losses: the sum over examples and labels, and its gradient by the scores [examples, labels] --------------------------

def squared_hinge(scores, one_hot):
    """Each label against the rest: max(0, 1 - y score)² with y = ±1."""
    signs = 2 * one_hot - 1
    violations = np.maximum(0, 1 - signs * scores)
    return np.sum(violations**2), -2 * signs * violations


def cross_entropy(scores, one_hot):
    shifted = scores - scores.max(1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -np.sum(one_hot * log_probabilities), np.exp(log_probabilities) - one_hot


def fitted(x, scale, one_hot, loss, c, start=None):
    """Weights W [features, labels] and bias b [labels] that minimise ½ |W|² + c · loss(x · (scale ∘ W) + b). `start` is weights
    and bias where L-BFGS starts, 0 by default."""
    (examples, features), labels = x.shape, one_hot.shape[1]
    split = lambda point: (point[:-labels].reshape(features, labels), point[-labels:])

    def objective(point):
        weights, bias = split(point)
        value, by_scores = loss(x.times(scale * weights) + bias, one_hot)
        by_weights = scale * x.transposed_times(by_scores) + weights / c
        gradient = np.concatenate([by_weights.ravel(), by_scores.sum(0)])
        return (value + np.sum(weights**2) / (2 * c)) / examples, gradient / examples

    point = np.zeros((features + 1) * labels) if start is None else np.concatenate([start[0].ravel(), start[1]])
    return split(minimum(objective, point))


# L-BFGS (Liu & Nocedal 1989) ------------------------------------------------------------------------------------------

def inner(a, b):
    """a · b without BLAS, whose threads take longer to wake than vectors of this length to multiply."""
    return np.einsum("i,i", a, b)


def minimum(objective, point, memory=10, most_steps=500, tolerance=1e-5):
    """The minimum of a smooth convex objective, which returns value and gradient at a point: no element of its gradient is above
    the tolerance, or it is what `most_steps` reach."""
    value, gradient = objective(point)
    pairs = collections.deque(maxlen=memory)
    for _ in range(most_steps):
        if np.abs(gradient).max() <= tolerance:
            break
        direction = -inverse_hessian_times(gradient, pairs)
        step = 1 if pairs else min(1, 1 / np.sqrt(inner(gradient, gradient)))
        most_rise = 1e-4 * inner(gradient, direction)  # Armijo's condition
        while True:
            new_point = point + step * direction
            new_value, new_gradient = objective(new_point)
            if new_value <= value + step * most_rise or step < 1e-10:
                break
            step /= 2
        pairs.append((new_point - point, new_gradient - gradient))
        point, value, gradient = new_point, new_value, new_gradient
    return point


def inverse_hessian_times(vector, pairs):
    """The product with the inverse Hessian that the pairs (difference of points, difference of gradients) approximate."""
    factors = []
    for s, y in reversed(pairs):
        factors.append(inner(s, vector) / inner(s, y))
        vector = vector - factors[-1] * y
    if pairs:
        s, y = pairs[-1]
        vector = vector * (inner(s, y) / inner(y, y))
    for (s, y), factor in zip(pairs, reversed(factors)):
        vector = vector + (factor - inner(y, vector) / inner(s, y)) * s
    return vector
