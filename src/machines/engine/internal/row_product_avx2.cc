#if defined(__x86_64__)
#include "engine/internal/row_product_256.h"

namespace molly::engine {
namespace {

struct DotAvx2 {
    static constexpr bool offsets_activations = false;
    static __m256i add(__m256i sums, __m256i a, __m256i b) {
        const __m256i pairs = _mm256_maddubs_epi16(a, b);
        return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
};

}  // namespace

void row_product_avx2(const RowProductTask& task, ByteRows& scratch) {
    RowTiles<RowProduct256<DotAvx2>>::run(task, scratch);
}

}  // namespace molly::engine
#endif
