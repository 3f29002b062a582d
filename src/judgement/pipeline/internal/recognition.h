#pragma once
// Labels survive copy and paste: what was labelled is remembered by its fingerprints, and brings
// its label back from another app, key or conversation. Pure, but for the store's memory.
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>

#include "annotate/fingerprint.h"
#include "domain/trace.h"
#include "store/store.h"

namespace molly::pipeline {

/// Conversations that a person lowered: their own text must not bring the old label back. Kept in
/// memory: after a restart it may, which is the strict side to err on. Safe from any thread.
class LoweredConversations {
public:
    void add(std::string conversation);
    bool contains(const std::string& conversation) const;

private:
    static constexpr std::size_t most = 4096;

    mutable std::mutex mutex_;
    std::unordered_set<std::string> names_;
};

/// Raises the label by every text in which enough fingerprints are known.
void recognise(const annotate::Fingerprinter& fingerprinter, const store::Store& store,
               domain::AnnotatedRequest& annotated);

/// Whether content with this label is to be known again: its class is above `above`, or something
/// but its own conversation and its fingerprints raised what was declared.
bool worth_knowing(const domain::Label& label, std::span<const domain::Signal> signals,
                   domain::Sensitivity above) noexcept;

/// Knows what was said in the request under its label from now on.
void remember(const annotate::Fingerprinter& fingerprinter, store::Store& store,
              const domain::Request& request, const domain::Label& label);

}  // namespace molly::pipeline
