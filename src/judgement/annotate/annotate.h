#pragma once
// What does a request need, and hold? Profile and label; they only tighten. Pure after
// construction; safe from any thread.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/trace.h"

namespace molly::annotate {

/// A declared rule that raises the label of what it matches: all of the conditions that it names
/// must hold, and of its phrases and patterns any one.
struct LabelRule {
    std::string name;
    std::vector<std::string>
        phrases;  ///< anywhere in a text; case and kind of white space do not matter
    std::vector<std::string> patterns;  ///< RE2 syntax, anywhere in a text
    std::vector<std::string> members;
    std::vector<std::string> apps;
    std::vector<std::string> tags;
    std::vector<std::string> paths;    ///< patterns with `*` and `?` for the metadata's paths
    std::vector<std::string> corpora;  ///< of the content's origins, or named in the metadata
    std::optional<domain::Sensitivity> sensitivity;
    std::optional<domain::Residency> residency;
};

/// What each kind of finding raises the class to; nothing: it raises none.
using FindingClasses = std::array<std::optional<domain::Sensitivity>, domain::finding_kinds>;
/// Secrets to `secret`, identifiers of persons to `private`, places and organisations nothing.
FindingClasses default_finding_classes() noexcept;

struct DetectOptions {
    bool enabled = true;  ///< false: nothing is looked for, and nothing may go to T3
    bool names = true;    ///< persons, organisations, places and addresses too
    bool topics = true;   ///< health, legal, financial and children's content raises to private
    /// Something may leave for T3, so that names are looked for in every request. While false, only
    /// in those whose class they could raise; the detection of the others counts as incomplete.
    bool outside = true;
    bool invalid_raises = true;  ///< what has wrong check digits raises the class all the same
    FindingClasses classes = default_finding_classes();
};

struct Options {
    domain::Sensitivity default_class = domain::Sensitivity::private_;
    std::vector<LabelRule> rules;
    DetectOptions detect;
    bool classify = true;  ///< reads what the request is about; false: its fields stay unknown
};

class Annotator {
public:
    /// Errors: invalid_request with the path of a pattern that does not compile.
    static Result<std::unique_ptr<Annotator>> make(Options options);
    virtual ~Annotator() = default;

    /// Labels everything in the request: every turn, system text, tool schema and result, file,
    /// metadata, embedding input. `sticky` is the label that its conversation already has. The
    /// class is the caller's declaration (or the key's or the general default), raised by rules, by
    /// what detectors find and by `sticky`; `declassified` when it ends below the general default.
    /// Fills `findings` and `detection_complete`. Errors: denied
    /// (class_below_key), when the caller declares a lower class than its key may.
    virtual Result<domain::AnnotatedRequest> annotate(
        domain::Request request, const std::optional<domain::Label>& sticky) const = 0;
};

/// Prompt tokens of `request`, estimated from its bytes (3.5 a token; no tokenizer is asked): what
/// will be paid for.
std::uint32_t estimate_prompt_tokens(const domain::Request& request) noexcept;
/// The longest sequence among them: what must fit into a model's context.
std::uint32_t estimate_context_tokens(const domain::Request& request) noexcept;

}  // namespace molly::annotate
