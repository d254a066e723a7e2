#pragma once

#include "inspect/attention_flow.h"
#include "inspect/png.h"

namespace qkv {

/// Attention maps side by side on white: a row for each layer, a column for each head, of at most
/// 16 layers and heads. In a map a row is a query and a column a key; a weight w has the colour
/// viridis(w) of Matplotlib, a line of 9 segments' ends: dark blue for 0, yellow for 1.
///
/// A cell has c = max(1, min(24, 240 / max(queries, keys))) pixels a side, rounded down. Cell (q,
/// k) of layer l and head h begins at the pixel
///
///     x = 4 + h (keys c + 4) + k c      y = 4 + l (queries c + 4) + q c
Image attention_image(const LayerWeights& layers);

}  // namespace qkv
