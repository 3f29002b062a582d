// The detectors of identifiers, secrets and names over any bytes: spans are in bounds, ascending,
// disjoint and on code-point boundaries, and the same text gives the same spans.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "annotate/detector.h"
#include "base/assert.h"
#include "base/utf8.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

void expect_sound(std::string_view text, const std::vector<domain::Finding>& findings) {
    const bool valid = utf8_valid(text);
    std::size_t last = 0;
    for (const domain::Finding& finding : findings) {
        MOLLY_ASSERT(last <= finding.begin);
        MOLLY_ASSERT(finding.begin < finding.end);
        MOLLY_ASSERT(finding.end <= text.size());
        const std::string_view span = text.substr(finding.begin, finding.end - finding.begin);
        MOLLY_ASSERT(!valid || utf8_valid(span));
        last = finding.end;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    static const auto detector = annotate::Detector::make({});
    MOLLY_ASSERT(detector);
    const void* start = bytes;
    const std::string_view text(static_cast<const char*>(start), size);
    const std::vector<domain::Finding> findings = (*detector)->find(text);
    expect_sound(text, findings);
    MOLLY_ASSERT((*detector)->find(text) == findings);
    expect_sound(text, (*detector)->find_json(text));
    expect_sound(text, (*detector)->find_structured(text));
    return 0;
}
