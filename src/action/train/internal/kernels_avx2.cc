#if defined(__x86_64__)
#include "train/internal/kernel_bodies.h"

namespace molly::train {

const Kernels& avx2_kernels() noexcept {
    static constexpr Kernels set = make_kernels("avx2");
    return set;
}

}  // namespace molly::train
#endif
