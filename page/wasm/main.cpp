// The functions that a browser calls: the engine and its files, by pointers into the module's
// memory (inspect/report/module.js).
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "page/engine.h"

namespace {

qkv::page::Engine& engine() {
  static qkv::page::Engine one;
  return one;
}

std::string
    text;  // of the latest call: where a name or a request is written, and then the document

}  // namespace

#define QKV_EXPORT(name) extern "C" __attribute__((export_name(name)))

/// Where `size` bytes of a name or a request are to be written; null where there is no memory for
/// them.
QKV_EXPORT("text") char* text_for(std::size_t size) try {
  text.assign(size, '\0');
  return text.data();
} catch (const std::exception&) {
  return nullptr;
}

/// Makes a file with the written name and returns where its `size` bytes are to be written; null
/// where there is no memory for them.
QKV_EXPORT("put") char* put(std::size_t size) try {
  std::string& file = engine().files()[text];
  file.assign(size, '\0');
  return file.data();
} catch (const std::exception&) {
  return nullptr;
}

/// The bytes of the file with the written name; null where there is none.
QKV_EXPORT("file") const char* file() {
  const auto found = engine().files().find(text);
  return found == engine().files().end() ? nullptr : found->second.data();
}
QKV_EXPORT("file_size") std::size_t file_size() {
  const auto found = engine().files().find(text);
  return found == engine().files().end() ? 0 : found->second.size();
}
QKV_EXPORT("remove") void remove_file() {
  engine().files().erase(text);
}

/// Answers the written request; returns the document, of `document_size` bytes.
QKV_EXPORT("call") const char* call() {
  text = engine().call(text);
  return text.data();
}
QKV_EXPORT("document_size") std::size_t document_size() {
  return text.size();
}
