#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace molly {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
    // NOLINTNEXTLINE(cert-err33-c): nothing is left to do about a failed write here.
    std::fprintf(stderr, "{\"event\":\"assertion_failed\",\"what\":\"%s\",\"at\":\"%s:%d\"}\n",
                 expression, file, line);
    std::abort();
}

}  // namespace molly
