#pragma once
// A row as tokens that say which of them are learned. The prompt's tokens are those of inference.
#include "base/result.h"
#include "train/examples.h"
#include "train/internal/example_row.h"

namespace molly::train {

/// Errors: those of the coder.
Result<Example> encode_example(const ExampleRow& row, TextCoder& coder);

}  // namespace molly::train
