#if defined(__x86_64__)
#include <immintrin.h>

#include "engine/internal/lora_vector.h"

namespace molly::engine {
namespace {

struct Sixteen512 {
    __m512 v;

    static Sixteen512 zero() { return {_mm512_setzero_ps()}; }
    static Sixteen512 same(float value) { return {_mm512_set1_ps(value)}; }
    static Sixteen512 load(const float* from) { return {_mm512_loadu_ps(from)}; }
    static Sixteen512 load_half(const std::uint16_t* from) {
        return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
    }
    static Sixteen512 load_bytes(const std::int8_t* from) {
        const auto* bytes = reinterpret_cast<const __m128i*>(from);
        return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)))};
    }
    static Sixteen512 multiply_add(Sixteen512 a, Sixteen512 b, Sixteen512 c) {
        return {_mm512_fmadd_ps(a.v, b.v, c.v)};
    }
    float sum() const { return _mm512_reduce_add_ps(v); }
    void add_to(float* to) const { _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), v)); }
};

}  // namespace

void lora_avx512(const LoraTask& task, const LoraRows& matrix) {
    run_task<Sixteen512>(task, matrix);
}

}  // namespace molly::engine
#endif
