"""The program's random streams, order of examples and division of a batch, from their descriptions.

Philox4x32-10 is Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"; core/random.h says what its counter holds,
datasets/batch.h how examples are permuted.
"""
import functools
import math

import numpy

LOW = numpy.uint64(0xFFFFFFFF)
HALF = numpy.uint64(32)
PURPOSES = ("initialisation", "shuffling", "dropout", "sampling", "testing")


def philox(counters, key):
    """Four words of 32 bits for each counter; `counters` [4, n]."""
    c = [numpy.asarray(word, dtype=numpy.uint64) for word in counters]
    k = [key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        p, q = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [q >> HALF ^ c[1] ^ numpy.uint64(k[0]), q & LOW, p >> HALF ^ c[3] ^ numpy.uint64(k[1]), p & LOW]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return numpy.stack(c)


class Random:
    """Random values as a function of (seed, purpose, step, stream, index)."""

    def __init__(self, seed, purpose, step=0, stream=0):
        self.seed, self.purpose, self.step, self.stream, self.streams = seed, purpose, step, stream, 0
        self.known = numpy.empty(0, dtype=numpy.uint64)

    def next(self):
        """An independent stream for each call."""
        self.streams += 1
        return Random(self.seed, self.purpose, self.step, self.streams)

    def bits(self, count):
        """The first `count` values, uniform over [0, 2^32)."""
        if len(self.known) < count:
            blocks = numpy.arange(-(-count // 4) + 4, dtype=numpy.uint64)
            same = numpy.ones_like(blocks)
            purpose = PURPOSES.index(self.purpose) << 24 | self.stream
            self.known = philox([blocks, same * numpy.uint64(self.step & 0xFFFFFFFF), same * numpy.uint64(self.step >> 32),
                                 same * numpy.uint64(purpose)], self.seed).T.ravel()
        return self.known[:count]

    def bit(self, index):
        return int(self.bits(index + 1)[index])

    def uniform(self, index):
        return self.bit(index) * 2.0**-32

    def permutation(self, n):
        """0, ..., n - 1 by the shuffle of Fisher and Yates."""
        order = list(range(n))
        for i in range(n, 1, -1):
            j = int(self.uniform(i) * i)
            order[i - 1], order[j] = order[j], order[i - 1]
        return order


def permuted(i, n, random):
    """Where a Feistel network on the pairs of Z_a x Z_b takes i, again while the result is n or more."""
    a = max(math.floor(math.sqrt(n) + 0.5), 1)
    b = (n - 1) // a + 1

    def shifted(x, size, turn, other):
        return (x + (random.bit(12 * other + turn) * size >> 32)) % size

    while True:
        left, right = i % a, i // a
        for turn in range(0, 12, 2):
            left = shifted(left, a, turn, right)
            right = shifted(right, b, turn + 1, left)
        i = right * a + left
        if i < n:
            return i


@functools.lru_cache
def epoch_random(seed, epoch):
    return Random(seed, "shuffling", epoch)


def micro_batch(number, batch, examples, seed):
    """The examples of micro-batch `number`; each epoch is a permutation of its own."""
    places = range(number * batch, (number + 1) * batch)
    return [permuted(i % examples, examples, epoch_random(seed, i // examples)) for i in places]


def chunks(batch, tokens, parameters):
    """Into how many chunks a micro-batch is divided, by its tokens and the operations of a step."""
    operations = 6.0 * tokens * parameters
    least = 1 if parameters > 1 << 22 else 2
    most = min(1024, batch)
    shards = min(max(int(min(tokens / 1024, operations / 2.5e8, most)), least), most)
    shards = 1 << shards.bit_length() - 1
    return shards if operations < 1e10 else shards * min(max(tokens // (shards * 256), 1), batch // shards)


def chunk_random(seed, first):
    """The stream of a chunk, by the number of its first example in the order of training."""
    return Random(seed, "dropout", first)


def evaluation_random(ids):
    """The stream of an example that is evaluated, by its ids: 46 bits of their FNV-1a hash."""
    hash = 0xCBF29CE484222325
    for i in ids:
        hash = (hash ^ int(i)) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return Random(0, "sampling", hash >> 18)
