"""The yardsticks of script/real-text against their formulas."""
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "script"))
import linear_models
import yardsticks


def example(label, text):
    words = text.split()
    return yardsticks.Example(label, words, list(zip(words, words[1:])))


# Each word occurs as often with either label; the bigrams decide.
NEGATIONS = [example(label, text) for label, text in (("good", "very good"), ("bad", "not good"), ("bad", "very bad"),
                                                      ("good", "not bad"))] * 5


class LinearModelsTest(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(1)
        self.dense = random.integers(0, 3, (20, 6)).astype(float)
        rows, columns = self.dense.nonzero()
        self.x = linear_models.SparseMatrix(rows, columns, self.dense[rows, columns], self.dense.shape)
        self.one_hot = np.eye(3)[random.integers(0, 3, 20)]

    def test_products_are_those_of_the_dense_matrix(self):
        by_columns, by_rows = np.arange(12.0).reshape(6, 2), np.arange(40.0).reshape(20, 2)
        np.testing.assert_allclose(self.x.times(by_columns), self.dense @ by_columns)
        np.testing.assert_allclose(self.x.transposed_times(by_rows), self.dense.T @ by_rows)
        np.testing.assert_allclose(self.x.column_sums(), self.dense.sum(0))

    def test_no_change_of_fitted_weights_lowers_the_objective(self):
        for loss in (linear_models.squared_hinge, linear_models.cross_entropy):
            for scale in (1, np.linspace(0.5, 2, 18).reshape(6, 3)):
                objective = lambda weights, bias: (np.sum(weights**2) / 2
                                                   + 3 * loss(self.dense @ (scale * weights) + bias, self.one_hot)[0])
                weights, bias = linear_models.fitted(self.x, scale, self.one_hot, loss, 3)
                lowest = objective(weights, bias)
                for size in (1e-2, -1e-2):
                    for i in range(weights.size):
                        step = size * np.eye(weights.size)[i].reshape(weights.shape)
                        self.assertGreater(objective(weights + step, bias), lowest)
                    for step in size * np.eye(bias.size)[:2]:
                        self.assertGreater(objective(weights, bias + step), lowest)


class YardsticksTest(unittest.TestCase):
    def test_scores_are_those_of_the_confusion_matrix(self):
        confusion = [[3, 1, 0], [0, 4, 0], [0, 0, 0]]
        self.assertEqual(yardsticks.accuracy(confusion), 7 / 8)
        self.assertAlmostEqual(yardsticks.macro_f1(confusion), (6 / 7 + 8 / 9) / 2)

    def test_naive_bayes_multiplies_smoothed_frequencies(self):
        train = [example("a", "x y"), example("a", "x"), example("b", "y z")]
        # With smoothing 1 "x" has probability 3/6 under a, 1/5 under b; "z" 1/6 and 2/5; the prior is 2 to 1.
        for text, predicted in (("x", 0), ("z", 1), ("x z", 0), ("unseen", 0)):
            confusion = yardsticks.naive_bayes(train, [example("a", text)], yardsticks.WORDS, [1])[1]
            self.assertEqual(confusion[0].tolist(), [1, 0] if predicted == 0 else [0, 1], text)

    def test_tf_idf_weighs_rare_and_repeated_words_more(self):
        train = [example("a", "x y"), example("b", "x x z")]
        features, _ = yardsticks.tf_idf_features(yardsticks.Bags(train, [], yardsticks.WORDS))
        rare = 1 + np.log(3 / 2)  # idf of a word in one of two examples; that of "x" is 1
        twice = 1 + np.log(2)
        expected = [np.array([1, rare]) / np.hypot(1, rare), np.array([twice, rare]) / np.hypot(twice, rare)]
        np.testing.assert_allclose(features.values, np.concatenate(expected))

    def test_cross_validation_chooses_bigrams_where_words_tell_nothing(self):
        for method in (yardsticks.nbsvm, yardsticks.tf_idf):
            self.assertEqual(yardsticks.accuracy(yardsticks.tuned(method, NEGATIONS, NEGATIONS)), 1)
            words = [confusion for options, confusion in method(NEGATIONS, NEGATIONS).items() if options[0] == yardsticks.WORDS]
            self.assertLess(max(map(yardsticks.accuracy, words)), 1)

    def test_folds_test_every_example_once_also_where_a_label_is_missing_in_one(self):
        examples = NEGATIONS + [example("rare", "odd")]
        for confusion in yardsticks.cross_validated(yardsticks.tf_idf, examples, 5).values():
            self.assertEqual(confusion.sum(1).tolist(), [10, 10, 1])


if __name__ == "__main__":
    unittest.main()
