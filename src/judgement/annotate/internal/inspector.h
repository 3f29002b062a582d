#pragma once
// Looks into every text of a request with rules, detectors and topics. Pure after construction;
// safe from any thread.
#include <array>
#include <memory>
#include <vector>

#include "annotate/annotate.h"
#include "annotate/detector.h"
#include "annotate/internal/matcher.h"
#include "annotate/internal/topics.h"
#include "domain/texts.h"

namespace molly::annotate {

/// What was seen in all texts together.
struct Inspection {
    std::vector<std::uint32_t> rules;  ///< texts in which each rule found something
    std::array<std::uint32_t, domain::finding_kinds> kinds{};
    std::array<std::uint32_t, domain::finding_kinds> invalid{};  ///< of them with wrong digits
    std::array<std::uint32_t, topics_count> topics{};            ///< texts about each
    std::vector<std::vector<domain::Finding>> findings;          ///< shape: [texts][findings]
    bool names = true;                                           ///< names are looked for
    bool complete = true;  ///< every text was readable and looked at, for everything
};

class JoinedTexts;

class Inspector {
public:
    /// Errors: invalid_request with the path of a rule's pattern that does not compile.
    static Result<std::unique_ptr<const Inspector>> make(const Options& options);

    /// `concerned` tells which rules are about this request. shape: [rules]. Without `names`
    /// persons, organisations and places are not looked for.
    Inspection inspect(const domain::Request& request, const std::vector<bool>& concerned,
                       bool names) const;

private:
    Inspector() = default;
    void inspect_text(const std::string& text, domain::TextForm form,
                      const std::vector<bool>& concerned, Inspection& seen) const;
    /// Identifiers, and what rules look for, that run over several text parts of one message, which
    /// a model reads as one. `texts` are those that were searched. shape: [texts]
    void look_across(const domain::Message& message, const std::vector<const std::string*>& texts,
                     const std::vector<bool>& concerned, Inspection& seen) const;
    /// Rules that match only where `joined` holds the end of one text and the beginning of another.
    void match_across(const JoinedTexts& joined, const std::vector<bool>& concerned,
                      Inspection& seen) const;
    void match_rules(std::string_view text, const std::vector<bool>& concerned, Inspection& seen,
                     std::vector<domain::Finding>& findings) const;
    void detect(std::string_view text, domain::TextForm form, Inspection& seen,
                std::vector<domain::Finding>& findings) const;

    std::unique_ptr<const Matcher> matcher_;
    std::unique_ptr<const Detector> detector_;  // null: detection is off
    std::shared_ptr<const Topics> topics_;      // null: off
    std::size_t rules_ = 0;
};

}  // namespace molly::annotate
