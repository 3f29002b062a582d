// Content does not turn into a string by itself.
// MODULE: domain
// EXPECT: could not convert|cannot convert|no viable conversion|conversion from
#include "domain/content.h"

std::string honest(const molly::domain::Content& content) {
    return content.text();
}

#if MISUSE
std::string leak(const molly::domain::Content& content) {
    return content;
}
#endif
