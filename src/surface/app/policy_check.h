#pragma once
// What a correct configuration says that its owner cannot have meant: rules that never apply,
// change nothing, stand behind another, or leave no place at all. Pure.
#include <string>
#include <vector>

#include "app/config.h"

namespace molly::app {

/// One remark on one rule.
struct Remark {
    std::string path;  ///< `policy.rule[2] (office)`
    std::string english;
    std::string italian;
};

std::vector<Remark> remarks_on(const Config& config);

}  // namespace molly::app
