#pragma once
// Which declared adapters are there, and which of them a request's label lets answer: looked up
// once, and again when a registry changed. Safe from any thread.
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "domain/label.h"
#include "policy/policy_engine.h"
#include "router/router.h"
#include "targets/target.h"

namespace molly::pipeline {

class Presence {
public:
    /// `roster` is that of the same targets, in their order, and outlives it as they do.
    Presence(std::vector<targets::Target*> targets, const router::Roster& roster);

    /// Fills `pairs` and `denied` as this request finds them.
    void look(const policy::ClearedRequest& cleared, const policy::PolicyEngine& policy,
              router::Moment& moment) const;

private:
    static constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();
    /// What was found when the registries were at `versions`.
    struct Found {
        std::vector<std::uint64_t> versions;  // shape: [watched_]
        std::vector<router::Moment::Serving> pairs;
        std::vector<domain::Label> labels;    // that adapters have, each once
        std::vector<std::uint32_t> label_of;  // shape: [pairs]; absent: none is asked about
        bool lasting = true;                  // nothing was missed for a while only
    };
    std::shared_ptr<const Found> found() const;
    std::shared_ptr<const Found> search(std::vector<std::uint64_t> versions) const;
    void deny(const policy::Permit& permit, const domain::Label& label, const Found& found,
              std::uint32_t number, router::Moment& moment) const;

    std::vector<targets::Target*> targets_;
    const router::Roster& roster_;
    std::vector<std::size_t> watched_;  // targets with adapters among the pairs
    mutable std::mutex mutex_;
    mutable std::shared_ptr<const Found> latest_;
};

}  // namespace molly::pipeline
