#include "members/internal/scope_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace molly::members::internal {
namespace {

Result<void> require(bool narrower, std::string_view field) {
    if (narrower) return {};
    return fail(Error(ErrorCode::denied,
                      fmt::format("{} is wider than that of the key that makes this one; a child "
                                  "key may do no more than its parent",
                                  field))
                    .italian(fmt::format("{} è più ampio di quello della chiave che crea questa; "
                                         "una chiave figlia non può più della madre",
                                         field))
                    .reason("scope_wider")
                    .param(std::string(field)));
}

/// No limit is the widest.
template <class T>
bool within(const std::optional<T>& child, const std::optional<T>& parent) {
    return !parent || (child && *child <= *parent);
}

bool covers(const std::vector<std::string>& models, const std::string& model) {
    return std::any_of(models.begin(), models.end(), [&](const std::string& allowed) {
        // A target stands for itself and for its adapters.
        return model == allowed ||
               (model.starts_with(allowed) && model.substr(allowed.size()).starts_with('/'));
    });
}

bool models_within(const Scope& child, const Scope& parent) {
    if (parent.models.empty()) return true;
    return !child.models.empty() &&
           std::all_of(child.models.begin(), child.models.end(),
                       [&](const std::string& model) { return covers(parent.models, model); });
}

}  // namespace

Result<void> check_narrower(const Scope& child, const Scope& parent) {
    TRY_DO(require(!child.admin || parent.admin, "admin"));
    TRY_DO(require(parent.admin || child.member == parent.member, "member"));
    TRY_DO(require((child.tiers & parent.tiers) == child.tiers, "tiers"));
    TRY_DO(require(models_within(child, parent), "models"));
    TRY_DO(require(child.lowest_class >= parent.lowest_class, "lowest_class"));
    // No declassification is the narrowest.
    TRY_DO(
        require(!child.declassify || (parent.declassify && *child.declassify >= *parent.declassify),
                "declassify"));
    TRY_DO(require(within(child.requests_per_minute, parent.requests_per_minute),
                   "requests_per_minute"));
    TRY_DO(require(within(child.tokens_per_minute, parent.tokens_per_minute), "tokens_per_minute"));
    TRY_DO(require(within(child.parallel_max, parent.parallel_max), "parallel_max"));
    TRY_DO(require(within(child.budget_per_month, parent.budget_per_month), "budget_per_month"));
    return require(within(child.expires, parent.expires), "expires");
}

Result<void> check_sense(const Scope& scope) {
    const auto refuse = [](std::string_view field, std::string_view why) {
        return fail(Error(ErrorCode::invalid_request, fmt::format("{}: {}", field, why))
                        .italian(fmt::format("{}: valore non accettabile", field))
                        .param(std::string(field)));
    };
    if (scope.member.empty()) return refuse("member", "say whose key it is");
    if (scope.tiers.empty()) return refuse("tiers", "a key that reaches no tier can do nothing");
    if (scope.default_class && *scope.default_class < scope.lowest_class)
        return refuse("default_class", "is below lowest_class");
    return {};
}

}  // namespace molly::members::internal
