"""BERT's and GPT-2's tokenizers, written from their published algorithms, and texts that are hard to cut."""
import random
import unicodedata

import regex

HARD = [
    "", "the bank of the river", "The BANK, of the River!", "don't they've we'll I'm he'd you're it's", "DON'T 'S 's ' 'x",
    "café naïve Ångström", "cafe\u0301 na\u0131ve", "İstanbul Straße ﬁne", "über ÜBER Ünïcödé", "Ελληνικά ΟΔΟΣ",
    "Москва и река", "银行在河边", "bank银行river河", "日本語のテスト", "한국어 시험", "ภาษาไทย", "हिन्दी नदी", "עברית שָׁלוֹם",
    "مرحبا بالعالم", "😀 bank 👍🏽 river", "👨‍👩‍👧‍👦family", "a\u00a0b\u00a0 c", "a\u2003b\u3000c", "tab\tand\nline\r\nend",
    "  leading and trailing  ", "many     spaces", "\n\n\nlines\n\n", "a \u00a0b", "1234567 3.14 1,000", "½ ² Ⅷ ٣٤", "x=1+2*3/4^5",
    "http://a.b/c?d=e&f#g", "me@example.org", "C++ & C#", "$5 £6 €7 ¥8", "`quoted` ~tilde~ ^hat^", "“curly” ‘quotes’ — dash…",
    "«guillemets» ¿qué? ¡sí!", "under_score camelCase", "[CLS] [SEP] [MASK] [PAD] [UNK]", "<|endoftext|> <pad> <unk>", "##ing ##",
    "a" * 100, "a" * 101, "ab" * 200, "bankbankbank", "riverbank's", "'tis 'twas", "o'clock l'eau", "zero\u200bwidth\ufeffmark",
    "soft\u00adhyphen", "control\x01char\x7f", "replacement\ufffdhere", "a\u2028b\u2029c", "vertical\x0btab\x0cfeed", "\u0301accent alone",
    "e\u0301\u0327 stacked", "ǅ ǆ Ǆ", "ß ẞ", "ªº", "ⓐⓑ", "１２３ＡＢＣ", "𝐛𝐚𝐧𝐤", "𐍈 gothic", "㐀䶵 豈 𠀀", "Ａ\u3000Ｂ", "x²y³", "10%", "a.b.c...d",
    "!!!???", "-- --- -", "(bank)", "\"bank\"", "bank,river;bank:river", "I'M DON'T", "we’ll don’t", "\u2019s", "end with space ",
]


def texts(count=240, seed=1):
    """The hard texts, and texts drawn from their characters and from words."""
    draw = random.Random(seed)
    letters = sorted(set("".join(HARD)))
    words = ["the", "bank", "River", "don't", " ", "  ", "\n", "é", "银", "12", "'s", ",", "😀", "\u00a0"]
    drawn = list(HARD)
    while len(drawn) < count:
        parts = letters if len(drawn) % 2 else words
        drawn.append("".join(draw.choice(parts) for _ in range(draw.randint(1, 24))))
    return drawn


def _is_punctuation(c):
    return unicodedata.category(c).startswith("P") or (33 <= ord(c) <= 126 and not c.isalnum())


IDEOGRAPHS = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF),
              (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def _basic(text, lower):
    kept = ""
    for c in text:
        if c in "\t\n\r" or unicodedata.category(c) == "Zs":
            kept += " "
        elif c != "\ufffd" and not unicodedata.category(c).startswith("C"):
            kept += f" {c} " if any(a <= ord(c) <= b for a, b in IDEOGRAPHS) else c
    for word in kept.split():
        if lower:
            word = word.lower()
            word = "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn")
        part = ""
        for c in word:
            if _is_punctuation(c):
                yield from filter(None, (part, c))
                part = ""
            else:
                part += c
        if part:
            yield part


def word_pieces(text, vocabulary, lower=True):
    """The tokens of a text by Devlin et al. 2019, without [CLS] and [SEP]."""
    tokens = []
    for word in _basic(text, lower):
        found, begin = [], 0
        while begin < len(word) and len(word) <= 100:
            end = len(word)
            while end > begin and ("##" if begin else "") + word[begin:end] not in vocabulary:
                end -= 1
            if end == begin:
                break
            found.append(("##" if begin else "") + word[begin:end])
            begin = end
        tokens += found if begin == len(word) else ["[UNK]"]
    return tokens


def byte_alphabet():
    """GPT-2's printable character of each byte."""
    own = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {byte: chr(byte if byte in own else 256 + others.index(byte)) for byte in range(256)}


PATTERN = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")


def byte_pairs(text, merges):
    """The tokens of a text by Radford et al. 2019; `merges` are pairs, the first ones first."""
    ranks, alphabet, tokens = {pair: i for i, pair in enumerate(merges)}, byte_alphabet(), []
    for piece in PATTERN.findall(text):
        symbols = [alphabet[byte] for byte in piece.encode()]
        while len(symbols) > 1:
            best = min(zip(symbols, symbols[1:]), key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                break
            merged, i = [], 0
            while i < len(symbols):
                both = tuple(symbols[i:i + 2]) == best
                merged.append("".join(best) if both else symbols[i])
                i += 2 if both else 1
            symbols = merged
        tokens += symbols
    return tokens


def learned_merges(count, seed=1):
    """Merges of the hard texts' most frequent pairs."""
    alphabet = byte_alphabet()
    pieces = [[alphabet[byte] for byte in piece.encode()] for text in texts(seed=seed) for piece in PATTERN.findall(text)]
    merges, made = [], set()
    while len(merges) < count:
        pairs = {}
        for symbols in pieces:
            for pair in zip(symbols, symbols[1:]):
                if "".join(pair) not in made:
                    pairs[pair] = pairs.get(pair, 0) + 1
        best = max(sorted(pairs), key=pairs.get)
        merges.append(best)
        made.add("".join(best))
        for symbols in pieces:
            i = 0
            while i + 1 < len(symbols):
                if tuple(symbols[i:i + 2]) == best:
                    symbols[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def bert_vocabulary():
    """Special tokens, some words, every character of the hard texts but a few, each also as a continuation."""
    tokens = ["[unused0]", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "bank", "river", "##bank", "##s", "##ing", "of", "cafe", "don"]
    characters = sorted({c for text in texts() for word in _basic(text, True) for c in word} |
                        {c for text in texts() for word in _basic(text, False) for c in word})
    for i, c in enumerate(characters):
        if i % 17:
            tokens += [token for token in (c, "##" + c) if token not in tokens]
    return tokens
