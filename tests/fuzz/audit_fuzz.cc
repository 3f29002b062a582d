// A receipt log, a witness file and a head's code from anybody: no bytes bring the verifier down, a
// log is sound or its fault has a place, and what is sound was written by Molly's own writer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "store/audit.h"

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* start = bytes;
    const std::string_view text(static_cast<const char*>(start), size);
    const auto witnessed = store::witness_from(text);
    if (const auto head = store::head_from_code(text)) MOLLY_ASSERT(head->sequence > 0);
    const auto report =
        store::verify_text(text, witnessed ? *witnessed : std::vector<store::WitnessedHead>());
    if (!report) return 0;
    MOLLY_ASSERT(report->sound == (report->damage == store::Damage::none));
    MOLLY_ASSERT(report->sound != report->fault_at.has_value());
    if (!report->sound) return 0;
    // No line of a sound log is free: signer, receipts, heads, and no byte after them.
    const auto lines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    MOLLY_ASSERT(text.ends_with('\n'));
    MOLLY_ASSERT(lines == 1 + report->receipts + report->signed_heads);
    return 0;
}
