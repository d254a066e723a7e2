"""Yardsticks for labels of text: naive Bayes, NBSVM and tf-idf with logistic regression.

Each is a function (train, test) that returns {options: confusion matrix of the test examples} for all of its options;
`tuned` chooses the options with the best macro F1 in 5-fold cross-validation inside the training examples.
"""
import collections
import itertools

import numpy as np

from linear_models import SparseMatrix, cross_entropy, fitted, squared_hinge

# Words, which may lack the one that is asked about, and pairs of neighbours.
Example = collections.namedtuple("Example", "label words bigrams")

WORDS, BIGRAMS = "words", "words and bigrams"


# Scores of a confusion matrix [right label][predicted label] ----------------------------------------------------------

def accuracy(confusion):
    return np.trace(confusion) / np.sum(confusion)


def macro_f1(confusion):
    """Mean F1 of the labels that occur."""
    confusion = np.asarray(confusion)
    right, predicted = confusion.sum(1), confusion.sum(0)
    occurs = right > 0
    return np.mean(2 * np.diag(confusion)[occurs] / (right + predicted)[occurs])


# Features -------------------------------------------------------------------------------------------------------------

def bag_of(example, features):
    return collections.Counter(example.words + (example.bigrams if features == BIGRAMS else []))


def matrix_of(bags, vocabulary):
    known = [{vocabulary[feature]: count for feature, count in bag.items() if feature in vocabulary} for bag in bags]
    return SparseMatrix.of_counts(known, len(vocabulary))


class Bags:
    """Counts of the features of training and test examples; the vocabulary is that of the training examples."""

    def __init__(self, train, test, features):
        train_bags, test_bags = ([bag_of(example, features) for example in examples] for examples in (train, test))
        vocabulary = {feature: i for i, feature in enumerate(dict.fromkeys(itertools.chain(*train_bags)))}
        self.labels = sorted({example.label for example in (*train, *test)})
        self.train, self.test = matrix_of(train_bags, vocabulary), matrix_of(test_bags, vocabulary)
        self.one_hot = np.eye(len(self.labels))[self.indices(train)]  # [training examples, labels]
        self.answers = self.indices(test)

    def indices(self, examples):
        return [self.labels.index(example.label) for example in examples]

    def confusion(self, scores):
        """[right label][predicted label] of the test examples, whose scores are [examples, labels]."""
        counts = np.zeros((len(self.labels), len(self.labels)), int)
        np.add.at(counts, (self.answers, scores.argmax(1)), 1)
        return counts


# Methods --------------------------------------------------------------------------------------------------------------

def log_odds_of_labels(one_hot):
    """[labels] ln(examples with the label / examples without it), finite where there are none."""
    counts = np.maximum(one_hot.sum(0), 1e-3)
    return np.log(counts / np.maximum(len(one_hot) - counts, 1e-3))


def naive_bayes(train, test, features, smoothings=(0.003, 0.01, 0.03, 0.1, 0.3, 1)):
    """Multinomial over the set of an example's features."""
    bags, results = Bags(train, test, features), {}
    counts = bags.train.binary().transposed_times(bags.one_hot)
    prior = np.log(np.maximum(bags.one_hot.sum(0), 1e-3))
    for smoothing in smoothings:
        log_likelihood = np.log((counts + smoothing) / (counts + smoothing).sum(0))
        results[smoothing] = bags.confusion(bags.test.binary().times(log_likelihood) + prior)
    return results


def nbsvm(train, test, cs=(0.01, 0.03, 0.1, 0.3, 1), interpolations=(0.25, 0.5, 0.75, 1)):
    """Wang & Manning 2012: a linear SVM (squared hinge loss) of each label against the rest whose features are the set of
    an example's n-grams times their log-count ratios, interpolated with naive Bayes. The bias is interpolated, too, as the
    weights are: that of the SVM alone shifts the decisions of naive Bayes where labels are of unequal frequency."""
    results = {}
    for features in (WORDS, BIGRAMS):
        bags = Bags(train, test, features)
        x, test_x = bags.train.binary(), bags.test.binary()
        p, q = (1 + x.transposed_times(examples) for examples in (bags.one_hot, 1 - bags.one_hot))
        ratios = np.log((p / p.sum(0)) / (q / q.sum(0)))
        model, prior = None, log_odds_of_labels(bags.one_hot)
        for c in cs:
            weights, bias = model = fitted(x, ratios, bags.one_hot, squared_hinge, c, model)
            mean = np.abs(weights).mean(0)
            svm, bayes = test_x.times(ratios * weights) + bias, mean * (test_x.times(ratios) + prior)
            for beta in interpolations:
                results[features, c, beta] = bags.confusion((1 - beta) * bayes + beta * svm)
    return results


def tf_idf_features(bags):
    """Training and test matrix of (1 + ln count) (1 + ln((1 + examples) / (1 + examples with the feature))), with rows of
    length 1: scikit-learn's TfidfVectorizer(sublinear_tf=True)."""
    idf = 1 + np.log((1 + bags.train.shape[0]) / (1 + bags.train.binary().column_sums()))
    return [counts.with_values((1 + np.log(counts.values)) * idf[counts.columns]).with_unit_rows()
            for counts in (bags.train, bags.test)]


def tf_idf(train, test, cs=(1, 3, 10, 30, 100, 300, 1000)):
    """Multinomial logistic regression of tf-idf features: scikit-learn's LogisticRegression(C=c)."""
    results = {}
    for features in (WORDS, BIGRAMS):
        bags = Bags(train, test, features)
        (x, test_x), model = tf_idf_features(bags), None
        for c in cs:
            weights, bias = model = fitted(x, 1, bags.one_hot, cross_entropy, c, model)
            results[features, c] = bags.confusion(test_x.times(weights) + bias)
    return results


# Choice of options ----------------------------------------------------------------------------------------------------

def cross_validated(method, examples, folds):
    """The sum of the folds' confusion matrices, for each of the method's options."""
    results = [method([x for i, x in enumerate(examples) if i % folds != k], examples[k::folds]) for k in range(folds)]
    return {options: sum(result[options] for result in results) for options in results[0]}


def tuned(method, train, test):
    found = cross_validated(method, train, 5)
    return method(train, test)[max(found, key=lambda options: macro_f1(found[options]))]
