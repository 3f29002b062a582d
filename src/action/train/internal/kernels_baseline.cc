#include "train/internal/kernel_bodies.h"

namespace molly::train {

const Kernels& baseline_kernels() noexcept {
    static constexpr Kernels set = make_kernels("baseline");
    return set;
}

}  // namespace molly::train
