// Content cannot be streamed to a log.
// MODULE: domain
// EXPECT: use of deleted function
#include <ostream>

#include "domain/content.h"

void honest(std::ostream& out, const molly::domain::Content& content) {
    out << content.text().size();
}

#if MISUSE
void leak(std::ostream& out, const molly::domain::Content& content) {
    out << content;
}
#endif
