// What leaves redacted comes back the same to the byte, wherever the answer is cut, and JSON stays
// JSON, whatever the findings are.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/json.h"
#include "base/utf8.h"
#include "domain/texts.h"
#include "policy/policy_engine.h"
#include "policy/redactor.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

constexpr std::size_t spans = 4;

/// Spans of `text` as the bytes say, in any order, overlapping, cutting code points and escapes.
std::vector<domain::Finding> findings_of(std::string_view text, const std::uint8_t* bytes) {
    std::vector<domain::Finding> findings;
    for (std::size_t i = 0; i < spans && !text.empty(); ++i) {
        const std::size_t begin = bytes[2 * i] % text.size();
        const std::size_t length = bytes[2 * i + 1] % 16;
        if (length == 0) continue;
        findings.push_back({static_cast<domain::FindingKind>(bytes[2 * i] % 3),
                            domain::Checksum::none, static_cast<std::uint32_t>(begin),
                            static_cast<std::uint32_t>(std::min(begin + length, text.size()))});
    }
    return findings;
}

policy::Redacted redacted(domain::Request request, std::string_view text, const std::uint8_t* bytes,
                          policy::PlaceholderMap& map) {
    domain::AnnotatedRequest annotated;
    annotated.label.sensitivity = domain::Sensitivity::standard;
    annotated.detection_complete = true;
    domain::for_each_text(request, [&](const std::string& one, domain::TextForm) {
        auto& findings = annotated.findings.emplace_back();
        if (one == text) findings = findings_of(one, bytes);
    });
    annotated.request = std::move(request);
    policy::Rule rule;
    rule.name = "open";
    rule.permit_t3 = true;
    auto cleared = policy::PolicyEngine({.rules = {rule}}).clear(std::move(annotated));
    MOLLY_ASSERT(cleared);
    auto spec = std::make_shared<domain::TargetSpec>();
    spec->tier = domain::Tier::t3;
    auto leave = policy::Dispatch::to(
        spec, "", std::make_shared<const policy::ClearedRequest>(*std::move(cleared)));
    MOLLY_ASSERT(leave);
    auto payload = policy::Redactor::redact(*std::move(leave), map);
    MOLLY_ASSERT(payload);
    return *std::move(payload);
}

std::string restored(policy::Restorer restorer, std::string_view answer, std::size_t piece) {
    std::string out;
    while (!answer.empty()) {
        domain::Delta delta;
        delta.text = answer.substr(0, piece);
        answer.remove_prefix(std::min(piece, answer.size()));
        out += restorer.restore(std::move(delta)).text;
    }
    return out + restorer.end().text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (size < 2 + 2 * spans) return 0;
    const void* start = bytes + 2 + 2 * spans;
    const std::string_view text(static_cast<const char*>(start), size - 2 - 2 * spans);
    if (!utf8_valid(text) || text.empty()) return 0;
    policy::PlaceholderMap map("the seed of a fuzzer, 32 bytes..");
    domain::Request request;
    if (bytes[0] % 2 == 0) {
        request.messages.push_back(domain::text_message(domain::Role::user, std::string(text)));
        const policy::Redacted payload = redacted(std::move(request), text, bytes + 2, map);
        const std::string& sent = payload.request().messages.front().parts.front().text.text();
        MOLLY_ASSERT(utf8_valid(sent));
        MOLLY_ASSERT(restored(payload.restorer(), sent, size) == text);
        MOLLY_ASSERT(restored(payload.restorer(), sent, std::size_t{bytes[1]} % 9 + 1) == text);
        return 0;
    }
    // A mark before the text is no JSON to a redactor, which then makes nothing of it.
    if (text.starts_with("\xEF\xBB\xBF")) return 0;
    if (!parse_json(text, {.bytes_max = 1U << 20U, .depth_max = 32})) return 0;
    domain::Tool tool;
    tool.name = "look";
    tool.parameters = domain::Content(std::string(text));
    request.tools.push_back(std::move(tool));
    const policy::Redacted payload = redacted(std::move(request), text, bytes + 2, map);
    MOLLY_ASSERT(parse_json(payload.request().tools.front().parameters.text()));
    return 0;
}
