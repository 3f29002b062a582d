#include "train/internal/matmul.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <dnnl.h>

#include "base/assert.h"

// Declared here because <omp.h> belongs to one compiler; oneDNN brings the library.
extern "C" void omp_set_num_threads(int count);

namespace molly::train {

void multiply(std::size_t rows, std::size_t columns, std::size_t inner, In a, In b, Out c,
              bool accumulate) {
    const auto size = [](std::size_t count) { return static_cast<dnnl_dim_t>(count); };
    const dnnl_status_t status =
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', size(rows), size(columns),
                   size(inner), 1.0F, a.at, size(a.stride), b.at, size(b.stride),
                   accumulate ? 1.0F : 0.0F, c.at, size(c.stride));
    MOLLY_ASSERT(status == dnnl_success);
}

void keep_matmul_to_this_thread() {
    omp_set_num_threads(1);
}

double measure_matmul_peak() {
    constexpr std::size_t side = 512;
    const std::vector<float> a(side * side, 0.5F);
    const std::vector<float> b(side * side, 0.25F);
    std::vector<float> c(side * side);
    double best = 0;
    for (int i = 0; i < 40; ++i) {
        const auto start = std::chrono::steady_clock::now();
        multiply(side, side, side, {a.data(), side}, {b.data(), side}, {c.data(), side});
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        best = std::max(best, 2.0 * side * side * side / spent.count() * 1e-9);
    }
    return best;
}

}  // namespace molly::train
