#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "datasets/tsv.h"

namespace qkv {

/// Rows of the form `label<TAB>index<TAB>sentence`.
struct CoarseWsd {
  std::vector<TsvRow> train, valid, test;
};

/// Reads a word's folder of CoarseWSD-20 (Loureiro et al. 2021, "Analysis and evaluation of
/// language models for word sense disambiguation"): `classes_map.txt` and for train and test
/// `*.data.txt` with lines `index<TAB>sentence` and `*.gold.txt` with a class number a line.
/// The fraction `valid_share` in [0, 1) of each sense's training sentences, drawn by `seed`,
/// becomes the validation split. Throws UserError naming file and line.
CoarseWsd read_coarsewsd(const std::filesystem::path& folder, double valid_share,
                         std::uint64_t seed);

}  // namespace qkv
