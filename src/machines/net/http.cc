#include "net/http.h"

namespace molly::net {

std::string_view header(const Headers& headers, std::string_view name) noexcept {
    for (const auto& [key, value] : headers) {
        if (key == name) return value;
    }
    return {};
}

}  // namespace molly::net
