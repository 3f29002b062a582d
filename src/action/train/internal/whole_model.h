#pragma once
// A GGUF model as the whole-model trainer wants it: its shape, and all weights as floats.
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "train/internal/frozen_model.h"
#include "train/internal/weights.h"
#include "train/shape.h"

namespace molly::train {

/// For sequences of `context` tokens. Errors: unsupported (names the part that pre-training lacks).
Result<Shape> shape_of(const FrozenModel& model, std::uint32_t context);
/// In the order of the layout of its shape; quantized weights as the values that they stand for.
std::vector<float> weights_of(const FrozenModel& model, const Layout& layout);

}  // namespace molly::train
