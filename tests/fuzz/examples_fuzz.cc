// Training files come from anywhere: reading ends in examples or in an error that names a line, and
// every example fits, ends with an answer and learns nothing of its first token.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/assert.h"
#include "base/utf8.h"
#include "train/internal/example_stream.h"
#include "train/internal/test_coder.h"

namespace {

using namespace molly::train;  // NOLINT(google-build-using-namespace): a fuzzer is one small
                               // program

constexpr std::uint32_t context = 512;

void check(const Sequence& sequence) {
    MOLLY_ASSERT(sequence.tokens.size() == sequence.learned.size());
    MOLLY_ASSERT(sequence.tokens.size() <= context);
    MOLLY_ASSERT(sequence.learned.front() == 0);
    MOLLY_ASSERT(sequence.learned.back() == 1);
}

void run(const std::string& text, RowKind kind, TestCoder::Template form) {
    TestCoder coder(form);
    std::istringstream stream(text);
    const auto examples = read_example_stream(stream, "rows", kind, coder, context);
    if (!examples) {
        MOLLY_ASSERT(molly::utf8_valid(examples.error().message()));
        return;
    }
    MOLLY_ASSERT(examples->facts.rows == examples->rows.size() + examples->facts.truncated);
    for (const Example& example : examples->rows) {
        check(example.better);
        if (kind == RowKind::pairs) check(example.worse);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const void* start = bytes;
    const std::string text(static_cast<const char*>(start), size);
    run(text, RowKind::answers, TestCoder::Template::chat_ml);
    run(text, RowKind::answers, TestCoder::Template::forgets_thoughts);
    run(text, RowKind::pairs, TestCoder::Template::chat_ml);
    return 0;
}
