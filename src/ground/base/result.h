#pragma once
// A value or an Error, and the only control-flow macros of the project.
#include <expected>
#include <utility>

#include "base/error.h"

namespace molly {

/// A value or an Error; ignoring it does not compile.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
public:
    using std::expected<T, Error>::expected;
    using std::expected<T, Error>::operator=;
};

/// The unexpected half of a Result.
inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
    return std::unexpected<Error>(Error(code, std::move(message)));
}
inline std::unexpected<Error> fail(Error error) {
    return std::unexpected<Error>(std::move(error));
}

}  // namespace molly

#define MOLLY_JOIN_2(a, b) a##b
#define MOLLY_JOIN(a, b) MOLLY_JOIN_2(a, b)

#define MOLLY_TRY_AS(keyword, name, decl, expr)                \
    auto name = (expr);                                        \
    if (!name) keyword ::molly::fail(std::move(name).error()); \
    decl = *std::move(name)
#define MOLLY_TRY_DO_AS(keyword, name, expr)                       \
    do {                                                           \
        auto name = (expr);                                        \
        if (!name) keyword ::molly::fail(std::move(name).error()); \
    } while (false)

/// `TRY(auto x, f())`: x is f()'s value, or this function returns its error.
#define TRY(decl, expr) MOLLY_TRY_AS(return, MOLLY_JOIN(molly_try_, __LINE__), decl, expr)
/// `CO_TRY(auto x, co_await f())`: the same in a coroutine.
#define CO_TRY(decl, expr) MOLLY_TRY_AS(co_return, MOLLY_JOIN(molly_try_, __LINE__), decl, expr)
/// `TRY_DO(f())`: for a Result<void>.
#define TRY_DO(expr) MOLLY_TRY_DO_AS(return, MOLLY_JOIN(molly_try_, __LINE__), expr)
/// `CO_TRY_DO(co_await f())`: the same in a coroutine.
#define CO_TRY_DO(expr) MOLLY_TRY_DO_AS(co_return, MOLLY_JOIN(molly_try_, __LINE__), expr)
