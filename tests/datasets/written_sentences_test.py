"""What datasets/bank/README.md and datasets/apple/README.md promise of the sentences that were written for this project."""
import collections
import pathlib
import sys
import unittest

PROJECT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(PROJECT / "datasets"))
sys.dont_write_bytecode = True
import describe  # noqa: E402


class WrittenSentences(unittest.TestCase):
    def each(self):
        for word in ("bank", "apple"):
            splits = describe.splits_of(PROJECT / "datasets" / word)
            self.assertEqual(sorted(splits), ["blind", "test", "train", "valid", "visitors"])
            with self.subTest(word):
                yield word, splits

    def test_the_index_is_the_only_place_of_the_word(self):
        for word, splits in self.each():
            for row in (row for rows in splits.values() for row in rows):
                places = [i for i, other in enumerate(row["sentence"].split())
                          if describe.words_of(other) and describe.words_of(other)[0].replace("’", "'") in
                          (word, word + "s", word + "'s", word + "s'")]
                self.assertEqual(places, [int(row["index"])], row["sentence"])

    def test_labels_are_balanced_in_every_split_and_among_mixed_sentences(self):
        for _, splits in self.each():
            for rows in splits.values():
                for chosen in (rows, [row for row in rows if row["mixed"] == "yes"]):
                    first, second = collections.Counter(row["label"] for row in chosen).values()
                    self.assertLess(abs(first - second), 0.03 * len(chosen) + 2)

    def test_a_third_has_words_of_the_other_sense(self):
        for _, splits in self.each():
            for rows in splits.values():
                self.assertGreaterEqual(sum(row["mixed"] == "yes" for row in rows), 0.3 * len(rows))

    def test_no_author_and_no_sentence_is_in_two_splits_and_none_occurs_twice(self):
        for _, splits in self.each():
            authors = [author for rows in splits.values() for author in {row["author"] for row in rows}]
            self.assertEqual(len(authors), len(set(authors)))
            texts = [" ".join(row["words"]) for rows in splits.values() for row in rows]
            self.assertEqual(len(texts), len(set(texts)))

    def test_no_frame_occurs_more_than_twice(self):
        for _, splits in self.each():
            counts = describe.frames([row for rows in splits.values() for row in rows])
            self.assertLessEqual(max(counts.values()), 2, counts.most_common(3))

    def test_sentences_have_3_to_30_words_in_training_and_the_test(self):
        for _, splits in self.each():
            for name in ("train", "test"):
                lengths = [len(row["words"]) for row in splits[name]]
                self.assertGreaterEqual(min(lengths), 3)
                self.assertLessEqual(max(lengths), 30)


if __name__ == "__main__":
    unittest.main()
