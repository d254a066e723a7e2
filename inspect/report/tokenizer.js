// How the program cuts a text into pieces and these into tokens: datasets/tokenizer.cpp in JavaScript.

const padding = 0, unknown = 1, firstByte = 2, byteTokens = 256, longestPiece = 64;  // longestPiece: bytes
const isWhite = c => /[\p{White_Space}\u200B\uFEFF]/u.test(c), isMark = c => /[.,;:!?()[\]"]|(?![\0-\x7F])\p{P}/u.test(c);
const isInnerMark = c => "\u00B7\u05F3\u05F4\u2010\u2011\u2019".includes(c);  // which belongs to a word between two letters
const splitWords = text => text.split(/[\p{White_Space}\u200B\uFEFF]+/u).filter(Boolean);
const lowered = text => text.replace(/[A-Z]/g, c => c.toLowerCase());
const bytesIn = c => { const code = c.codePointAt(0); return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; };

// Whether a piece is a word or a part of one.
const namesSomething = piece => { const bare = [...piece.replace(/^ /, "")]; return bare.length > 1 || (bare.length === 1 && !isMark(bare[0])); };

class Tokenizer {
  constructor({ kind, lower_case }, tokens) {
    this.kind = kind;
    this.lowers = lower_case;
    this.tokens = tokens;
    this.ids = new Map(tokens.map((token, id) => [token, id === padding ? unknown : id]));  // no text is padding
  }

  id(token) { return this.ids.has(token) ? this.ids.get(token) : unknown; }
  prepared(text) { return this.lowers ? lowered(text.normalize("NFC")) : text.normalize("NFC"); }

  // The pieces of a text, which no token reaches across.
  pieces(text) {
    const characters = [...this.prepared(text)];
    if (this.kind === "char") return characters;
    const found = [];
    for (let begin = 0; begin < characters.length;) {
      const length = this.kind === "bpe" ? this.bytePairPiece(characters, begin) : this.wordPiece(characters, begin);
      if (length) found.push(characters.slice(begin, begin + length).join(""));
      begin += length || 1;  // white space between words is left out
    }
    return found;
  }
  wordPiece(characters, begin) {
    const isLetter = i => i < characters.length && !isWhite(characters[i]) && !isMark(characters[i]);
    let end = begin;
    while (isLetter(end) || (end > begin && end < characters.length && isInnerMark(characters[end]) && isLetter(end + 1))) ++end;
    return end > begin ? end - begin : isWhite(characters[begin]) ? 0 : 1;
  }
  bytePairPiece(characters, begin) {
    const space = characters[begin] === " " && begin + 1 < characters.length && !isWhite(characters[begin + 1]) ? 1 : 0;
    if (isWhite(characters[begin + space])) return space + 1;
    const length = space + this.wordPiece(characters, begin + space);
    let bytes = 0, kept = 0;
    while (kept < length && (bytes += bytesIn(characters[begin + kept])) <= longestPiece) ++kept;
    return kept;
  }
  // Those of a sentence: white space counts as one space, with which a sentence of bpe begins.
  sentencePieces(sentence) { return this.piecesOfWords(sentence).flat(); }
  // Those of each word between white space.
  piecesOfWords(sentence) {
    return splitWords(sentence).map((word, i) =>
      this.pieces(this.kind === "bpe" || (this.kind === "char" && i) ? ` ${word}` : word));
  }

  // The tokens of a piece as { words, ids }; an unknown one as the text has it.
  encode(piece) {
    if (this.kind !== "bpe") return { words: [piece], ids: [this.id(piece)] };
    const ids = this.bytePairs(piece);
    return { words: ids.map(id => this.tokens[id]), ids };
  }
  // Adjacent symbols whose text is the token with the lowest id are merged until there are none.
  bytePairs(piece) {
    const symbols = [...piece].flatMap(c => this.id(c) !== unknown ? [{ text: c, id: this.id(c) }]
      : [...new TextEncoder().encode(c)].map(byte => ({ id: firstByte + byte })));
    const merged = i => {
      const [a, b] = symbols.slice(i, i + 2);
      const id = a.text && b.text ? this.id(a.text + b.text) : unknown;
      return id >= firstByte + byteTokens ? id : Infinity;
    };
    for (;;) {
      let best = Infinity, at = 0;
      for (let i = 0; i + 1 < symbols.length; ++i) if (merged(i) < best) best = merged(at = i);
      if (best === Infinity) return symbols.map(symbol => symbol.id);
      symbols.splice(at, 2, { text: symbols[at].text + symbols[at + 1].text, id: best });
    }
  }
  // Pieces as { words, ids }.
  encodeAll(pieces) {
    const encoded = pieces.map(piece => this.encode(piece));
    return { words: encoded.flatMap(e => e.words), ids: encoded.flatMap(e => e.ids) };
  }

  // Tokens as one text.
  joined(tokens) {
    if (this.kind === "word") return tokens.join(" ");
    if (this.kind === "char") return tokens.join("");
    const bytes = tokens.flatMap(token => /^<0x[0-9A-F]{2}>$/.test(token) ? [parseInt(token.slice(3, 5), 16)]
                                                                          : [...new TextEncoder().encode(token)]);
    return new TextDecoder().decode(Uint8Array.from(bytes));
  }
}
