#include "train/internal/kernels.h"

namespace molly::train {

const Kernels& kernels() noexcept {
#if defined(__x86_64__)
    static const Kernels& best =
        __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                __builtin_cpu_supports("avx512vl") != 0
            ? avx512_kernels()
        : __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0
            ? avx2_kernels()
            : baseline_kernels();
    return best;
#else
    return baseline_kernels();
#endif
}

}  // namespace molly::train
