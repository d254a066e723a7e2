// utf8proc's functions, answered by the browser's own tables (inspect/report/module.js).
#include <utf8proc.h>

#include <cstdlib>

#define QKV_IMPORT(name) __attribute__((import_module("unicode"), import_name(name)))

extern "C" {

QKV_IMPORT("category") int unicode_category(int code);
QKV_IMPORT("lower") int unicode_lower(int code);
QKV_IMPORT("upper") int unicode_upper(int code);
/// Writes the normal form of a text, decomposed or composed, to memory from malloc at `*result`,
/// zero-terminated, and returns its length.
QKV_IMPORT("normalized")
int unicode_normalized(const utf8proc_uint8_t* text, int length, bool composed,
                       utf8proc_uint8_t** result);

utf8proc_category_t utf8proc_category(utf8proc_int32_t code) {
  return static_cast<utf8proc_category_t>(unicode_category(code));
}
utf8proc_int32_t utf8proc_tolower(utf8proc_int32_t code) {
  return unicode_lower(code);
}
utf8proc_int32_t utf8proc_toupper(utf8proc_int32_t code) {
  return unicode_upper(code);
}

utf8proc_ssize_t utf8proc_iterate(const utf8proc_uint8_t* text, utf8proc_ssize_t length,
                                  utf8proc_int32_t* code) {
  *code = -1;
  if (length <= 0) return 0;
  const int first = text[0];
  if (first < 0x80) {
    *code = first;
    return 1;
  }
  const int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || length < size) return UTF8PROC_ERROR_INVALIDUTF8;
  int value = first & (0xFF >> (size + 1));
  for (int i = 1; i < size; ++i) {
    if ((text[i] & 0xC0) != 0x80) return UTF8PROC_ERROR_INVALIDUTF8;
    value = value << 6 | (text[i] & 0x3F);
  }
  constexpr int least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < least[size] || value > 0x10FFFF || is_surrogate) return UTF8PROC_ERROR_INVALIDUTF8;
  *code = value;
  return size;
}

utf8proc_ssize_t utf8proc_encode_char(utf8proc_int32_t code, utf8proc_uint8_t* to) {
  const int size = code < 0 || code > 0x10FFFF ? 0
                   : code < 0x80               ? 1
                   : code < 0x800              ? 2
                   : code < 0x10000            ? 3
                                               : 4;
  if (size == 1) to[0] = static_cast<utf8proc_uint8_t>(code);
  if (size < 2) return size;
  for (int i = size - 1; i > 0; --i, code >>= 6)
    to[i] = static_cast<utf8proc_uint8_t>(0x80 | (code & 0x3F));
  to[0] = static_cast<utf8proc_uint8_t>((0xF00 >> size & 0xFF) | code);
  return size;
}

utf8proc_ssize_t utf8proc_map(const utf8proc_uint8_t* text, utf8proc_ssize_t length,
                              utf8proc_uint8_t** result, utf8proc_option_t options) {
  utf8proc_int32_t code = 0;
  for (utf8proc_ssize_t at = 0; at < length;) {
    const utf8proc_ssize_t size = utf8proc_iterate(text + at, length - at, &code);
    if (size <= 0) return UTF8PROC_ERROR_INVALIDUTF8;
    at += size;
  }
  return unicode_normalized(text, static_cast<int>(length), (options & UTF8PROC_COMPOSE) != 0,
                            result);
}

const char* utf8proc_errmsg(utf8proc_ssize_t) {
  return "Invalid UTF-8 string";
}
}
