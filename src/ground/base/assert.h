#pragma once
// Broken invariants stop the process, in release builds too. Input never reaches an assertion.

namespace molly {

/// Logs the broken invariant and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace molly

#define MOLLY_ASSERT(condition)             \
    (static_cast<bool>(condition) ? void(0) \
                                  : ::molly::assertion_failed(#condition, __FILE__, __LINE__))
