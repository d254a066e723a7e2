#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/picture.h"

namespace qkv {

/// Pictures as one SVG document on white paper that needs no other file: text stays text, and more
/// of a value is darker, in grey too. A legend of each scale stands below. The cells of a map are
/// the `rect` elements of its group "cells"; maps of more than 128 rows or columns are drawn as
/// block averages.
std::string svg(const std::string& title, const std::vector<Picture>& pictures);

/// Whether a file begins as `svg` writes it.
bool begins_as_svg(std::string_view beginning);

}  // namespace qkv
