#pragma once
// read_examples, from any stream.
#include <cstdint>
#include <istream>
#include <string>

#include "base/result.h"
#include "train/examples.h"

namespace molly::train {

/// `name`: of the file, for messages. Errors: as read_examples.
Result<Examples> read_example_stream(std::istream& stream, const std::string& name, RowKind kind,
                                     TextCoder& coder, std::uint32_t context);

}  // namespace molly::train
