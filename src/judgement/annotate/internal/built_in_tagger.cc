// The model file models/tagger.bin, as it lies in the repository, inside the binary.
#include "annotate/internal/tagger.h"

// NOLINTNEXTLINE(hicpp-no-assembler): C++23 has no #embed yet
__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "molly_tagger_begin:\n"
    ".incbin \"" MOLLY_TAGGER_FILE
    "\"\n"
    "molly_tagger_end:\n"
    ".previous\n");

extern "C" {
extern const char molly_tagger_begin;
extern const char molly_tagger_end;
}

namespace molly::annotate {

std::string_view built_in_tagger() noexcept {
    return {&molly_tagger_begin, static_cast<std::size_t>(&molly_tagger_end - &molly_tagger_begin)};
}

}  // namespace molly::annotate
