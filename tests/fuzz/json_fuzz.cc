// The strict parser: what it accepts is valid UTF-8, has no repeated key, and says the same when it
// is written and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/json.h"
#include "base/utf8.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): a fuzzer is one small program

void expect_distinct_keys(const json::value& value) {
    if (const json::array* array = value.if_array()) {
        for (const json::value& element : *array)
            expect_distinct_keys(element);
    }
    const json::object* object = value.if_object();
    if (object == nullptr) return;
    std::vector<std::string_view> keys;
    for (const auto& [key, member] : *object) {
        keys.push_back(key);
        expect_distinct_keys(member);
    }
    std::sort(keys.begin(), keys.end());
    MOLLY_ASSERT(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* start = bytes;
    const std::string_view text(static_cast<const char*>(start), size);
    const auto value = parse_json(text, {.bytes_max = 1U << 20U, .depth_max = 32});
    std::string quoted;
    append_json_string(quoted, text);
    MOLLY_ASSERT(utf8_valid(quoted));
    if (!value) return 0;
    MOLLY_ASSERT(utf8_valid(text));
    expect_distinct_keys(*value);
    const std::string written = to_text(*value);
    const auto again = parse_json(written);
    MOLLY_ASSERT(again);
    MOLLY_ASSERT(to_text(*again) == written);
    return 0;
}
