#if defined(__x86_64__)
#include "engine/internal/row_product_256.h"

namespace molly::engine {
namespace {

struct DotAvxVnni {
    static constexpr bool offsets_activations = true;
    static __m256i add(__m256i sums, __m256i a, __m256i b) {
        return _mm256_dpbusd_avx_epi32(sums, a, b);
    }
};

}  // namespace

void row_product_avx_vnni(const RowProductTask& task, ByteRows& scratch) {
    RowTiles<RowProduct256<DotAvxVnni>>::run(task, scratch);
}

}  // namespace molly::engine
#endif
