#pragma once
// Arguments of tool calls: text in one dialect, an object in another. Pure.
#include <string>
#include <string_view>

namespace molly::dialects {

/// Whether `text` is one JSON object.
bool is_object_text(std::string_view text);

/// `text` where it is one JSON object, `{}` where it is empty, and otherwise an object that holds
/// it: a model may have written anything, and the caller shall see it.
std::string object_text(std::string_view text);

}  // namespace molly::dialects
