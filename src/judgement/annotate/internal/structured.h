#pragma once
// One pass over a text that proposes places to the recognisers. Pure.
#include <string_view>
#include <vector>

#include "annotate/internal/scan.h"

namespace molly::annotate {

/// Appends what the recognisers find in `text`; overlaps are still there.
void find_structured(std::string_view text, std::vector<Finding>& out);

}  // namespace molly::annotate
