#include "dialects/internal/object_text.h"

#include "dialects/internal/json_text.h"

namespace molly::dialects {

bool is_object_text(std::string_view text) {
    const auto value = parse_json(text);
    return value && value->is_object();
}

std::string object_text(std::string_view text) {
    if (text.empty()) return "{}";
    if (is_object_text(text)) return std::string(text);
    std::string wrapped;
    JsonText(wrapped).open().field("arguments", text).close();
    return wrapped;
}

}  // namespace molly::dialects
