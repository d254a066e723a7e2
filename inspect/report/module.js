// The engine, compiled to WebAssembly (page/engine.h): calls as JSON, and files in its memory. Workers run this text, too.

class EngineError extends Error {}

const utf8 = { encoder: new TextEncoder(), decoder: new TextDecoder() };

// The bytes of a text in base64 of gzip.
async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

class Module {
  // A WebAssembly.Module, which a worker can be given.
  static async compile(base64) { return WebAssembly.compile(await unpacked(base64)); }
  static async start(compiled) {
    const module = new Module(), imports = { unicode: unicodeOf(module), wasi_snapshot_preview1: systemOf(module, compiled) };
    module.exports = (await WebAssembly.instantiate(compiled, imports)).exports;
    module.exports._initialize();
    return module;
  }

  // The document of a request; throws EngineError with the program's message. A module that has failed answers nothing more.
  call(request) {
    if (this.failure) throw new EngineError(this.failure);
    let document;
    try {
      this.write(JSON.stringify(request));
      const begin = this.exports.call();
      document = JSON.parse(utf8.decoder.decode(this.bytes(begin, this.exports.document_size())));
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError) && !(error instanceof WebAssembly.Exception)) throw error;
      this.failure = `the engine has stopped: ${error.message}`;
      throw new EngineError(this.failure);
    }
    if (document && document.error !== undefined) throw new EngineError(document.error);
    return document;
  }
  put(name, bytes) {
    this.write(name);
    this.bytes(this.memoryFor(this.exports.put(bytes.length)), bytes.length).set(bytes);
  }
  // Removes and returns a file.
  take(name) {
    const found = this.find(name), bytes = found ? this.bytes(found.begin, found.size).slice() : new Uint8Array();
    this.exports.remove();
    return bytes;
  }

  find(name) {
    this.write(name);
    const begin = this.exports.file();
    return begin ? { begin, size: this.exports.file_size() } : null;
  }
  write(text) {
    const bytes = utf8.encoder.encode(text);
    this.bytes(this.memoryFor(this.exports.text(bytes.length)), bytes.length).set(bytes);
  }
  memoryFor(address) {
    if (!address) throw new RangeError("the page has no memory left for this");
    return address >>> 0;
  }
  // All of the memory. A module that takes the memory of another one, as it was between two calls, continues as that one.
  get memory() { return new Uint8Array(this.exports.memory.buffer); }
  takeMemory(bytes) {
    const page = 65536;
    this.exports.memory.grow((bytes.length - this.memory.length) / page);
    this.memory.set(bytes);
  }
  bytes(begin, size) { return new Uint8Array(this.exports.memory.buffer, begin >>> 0, size); }
  get view() { return new DataView(this.exports.memory.buffer); }
}

// The functions of utf8proc that the program calls.
function unicodeOf(module) {
  const names = ["Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So",
                 "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"];
  const categories = names.map(name => new RegExp(`^\\p{${name}}$`, "u")), known = new Map();
  const categoryOf = code => Math.max(categories.findIndex(category => category.test(String.fromCodePoint(code))), 0);
  const mapped = (code, change) => {
    const [first, ...others] = [...change(String.fromCodePoint(code))];
    return others.length ? code : first.codePointAt(0);
  };
  return {
    category(code) {
      if (!known.has(code)) known.set(code, code >= 0 && code <= 0x10FFFF ? categoryOf(code) : 0);
      return known.get(code);
    },
    lower: code => mapped(code, c => c.toLowerCase()),
    upper: code => mapped(code, c => c.toUpperCase()),
    normalized(begin, length, composed, result) {
      const text = utf8.encoder.encode(utf8.decoder.decode(module.bytes(begin, length)).normalize(composed ? "NFC" : "NFD"));
      const to = module.exports.malloc(text.length + 1) >>> 0;
      module.bytes(to, text.length).set(text);
      module.bytes(to + text.length, 1)[0] = 0;
      module.view.setUint32(result, to, true);
      return text.length;
    },
  };
}

// The system's calls (WASI preview 1), as far as the engine makes any: it reads files of its table.
function systemOf(module, compiled) {
  const ok = 0, badFile = 8, noFile = 44, unsupported = 52, root = 3, folder = 3, regular = 4, all = 0xFFFFFFFFFFFFFFFFn;
  const open = new Map();  // by number: { name, at }
  const nameAt = (begin, length) => utf8.decoder.decode(module.bytes(begin, length));
  const named = path => module.find(path) || module.find(`/${path}`);
  const put64 = (at, value) => module.view.setBigUint64(at, BigInt(value), true);
  const status = (at, type, size) => {
    module.bytes(at, 64).fill(0);
    module.view.setUint8(at + 16, type);
    put64(at + 32, size);
    return ok;
  };
  const readAt = (file, from, buffers, count, got) => {
    const { begin, size } = named(file.name);
    let at = from;
    for (let i = 0; i < count; ++i) {
      const to = module.view.getUint32(buffers + 8 * i, true), part = Math.min(module.view.getUint32(buffers + 8 * i + 4, true), size - at);
      module.bytes(to, part).set(module.bytes(begin + at, part));
      at += part;
    }
    module.view.setUint32(got, at - from, true);
    return at;
  };
  const calls = {
    clock_time_get: (clock, precision, at) => (put64(at, Math.round(performance.now() * 1e6)), ok),
    environ_sizes_get: (count, size) => (module.view.setUint32(count, 0, true), module.view.setUint32(size, 0, true), ok),
    environ_get: () => ok,
    fd_prestat_get: (fd, at) => fd === root ? (module.view.setUint32(at, 0, true), module.view.setUint32(at + 4, 1, true), ok) : badFile,
    fd_prestat_dir_name: (fd, at) => (module.bytes(at, 1)[0] = 47, ok),
    fd_fdstat_get(fd, at) {
      module.bytes(at, 24).fill(0);
      module.view.setUint8(at, fd === root ? folder : regular);
      put64(at + 8, all);
      put64(at + 16, all);
      return ok;
    },
    path_open(fd, flags, path, length, openFlags, rights, inherited, fdFlags, at) {
      const name = nameAt(path, length);
      if (!named(name)) return noFile;
      let number = root + 1;
      while (open.has(number)) ++number;
      open.set(number, { name, at: 0 });
      module.view.setUint32(at, number, true);
      return ok;
    },
    path_filestat_get(fd, flags, path, length, at) {
      const found = named(nameAt(path, length));
      return found ? status(at, regular, found.size) : noFile;
    },
    fd_filestat_get: (fd, at) => open.has(fd) ? status(at, regular, named(open.get(fd).name).size) : badFile,
    fd_read(fd, buffers, count, got) {
      const file = open.get(fd);
      if (!file) return badFile;
      file.at = readAt(file, file.at, buffers, count, got);
      return ok;
    },
    fd_pread: (fd, buffers, count, from, got) => open.has(fd) ? (readAt(open.get(fd), Number(from), buffers, count, got), ok) : badFile,
    fd_seek(fd, offset, whence, at) {
      const file = open.get(fd);
      if (!file) return badFile;
      file.at = Number(offset) + [0, file.at, named(file.name).size][whence];
      put64(at, file.at);
      return ok;
    },
    fd_close: fd => open.delete(fd) ? ok : badFile,
    fd_write(fd, buffers, count, written) {
      let size = 0;
      for (let i = 0; i < count; ++i) size += module.view.getUint32(buffers + 8 * i + 4, true);
      module.view.setUint32(written, size, true);
      return ok;
    },
    proc_exit(code) { throw new WebAssembly.RuntimeError(`exit ${code}`); },
  };
  const asked = WebAssembly.Module.imports(compiled).filter(({ module: name }) => name === "wasi_snapshot_preview1");
  return Object.fromEntries(asked.map(({ name }) => [name, calls[name] || (() => unsupported)]));
}
