#if defined(__x86_64__)
#include <immintrin.h>

#include "engine/internal/lora_vector.h"

namespace molly::engine {
namespace {

struct Sixteen256 {
    __m256 low;
    __m256 high;

    static Sixteen256 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
    static Sixteen256 same(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
    static Sixteen256 load(const float* from) {
        return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
    }
    static Sixteen256 load_half(const std::uint16_t* from) {
        const auto* halves = reinterpret_cast<const __m128i*>(from);
        return {_mm256_cvtph_ps(_mm_loadu_si128(halves)),
                _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
    }
    static Sixteen256 load_bytes(const std::int8_t* from) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
    }
    static Sixteen256 multiply_add(Sixteen256 a, Sixteen256 b, Sixteen256 c) {
        return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
    }
    float sum() const {
        const __m256 eight = _mm256_add_ps(low, high);
        const __m128 four =
            _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    void add_to(float* to) const {
        _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), low));
        _mm256_storeu_ps(to + 8, _mm256_add_ps(_mm256_loadu_ps(to + 8), high));
    }
};

}  // namespace

void lora_avx2(const LoraTask& task, const LoraRows& matrix) {
    run_task<Sixteen256>(task, matrix);
}

}  // namespace molly::engine
#endif
