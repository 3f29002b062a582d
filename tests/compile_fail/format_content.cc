// Content cannot be formatted into a message.
// MODULE: domain
// EXPECT: Cannot format an argument|formattable|deleted function
#include <fmt/format.h>

#include "domain/content.h"

std::string honest(const molly::domain::Content& content) {
    return fmt::format("{} bytes", content.text().size());
}

#if MISUSE
std::string leak(const molly::domain::Content& content) {
    return fmt::format("{}", content);
}
#endif
