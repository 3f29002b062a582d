#include "engine/internal/reuse.h"

#include <cmath>

namespace molly::engine {
namespace {

constexpr std::size_t keys_max = 65'536;
constexpr double faint = 0.01;

}  // namespace

double Reuse::now(const Seen& seen) const {
    return seen.value * std::exp2(-static_cast<double>(clock_ - seen.when) / half_life_);
}

void Reuse::asked(const std::string& key) {
    ++clock_;
    Seen& seen = seen_[key];
    seen = {.value = now(seen) + 1, .when = clock_};
    if (seen_.size() > keys_max) forget_faint();
}

double Reuse::likelihood(const std::string& key) const {
    const auto found = seen_.find(key);
    return found == seen_.end() ? 0 : now(found->second);
}

void Reuse::forget_faint() {
    std::erase_if(seen_, [&](const auto& entry) { return now(entry.second) < faint; });
    // Requests spread over so many keys that none is faint yet: begin again.
    if (seen_.size() > keys_max) seen_.clear();
}

}  // namespace molly::engine
