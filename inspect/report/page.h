#pragma once

#include <string>
#include <string_view>

namespace qkv::report {

/// The report page around its data, a JSON document. Everything is inside: styles, D3, scripts.
std::string page(std::string_view title, std::string_view json);

/// Characters of such a page without title and data.
std::size_t characters_around_data();

}  // namespace qkv::report
