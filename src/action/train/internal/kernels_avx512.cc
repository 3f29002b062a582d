#if defined(__x86_64__)
#include "train/internal/kernel_bodies.h"

namespace molly::train {

const Kernels& avx512_kernels() noexcept {
    static constexpr Kernels set = make_kernels("avx512");
    return set;
}

}  // namespace molly::train
#endif
