// The model file models/profile.bin, as it lies in the repository, inside the binary.
#include "profile/internal/model.h"

// NOLINTNEXTLINE(hicpp-no-assembler): C++23 has no #embed yet
__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "molly_profile_begin:\n"
    ".incbin \"" MOLLY_PROFILE_FILE
    "\"\n"
    "molly_profile_end:\n"
    ".previous\n");

extern "C" {
extern const char molly_profile_begin;
extern const char molly_profile_end;
}

namespace molly::profile {

std::string_view built_in_model() noexcept {
    return {&molly_profile_begin,
            static_cast<std::size_t>(&molly_profile_end - &molly_profile_begin)};
}

}  // namespace molly::profile
