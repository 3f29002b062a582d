#if defined(__aarch64__)
#include <arm_neon.h>

#include "engine/internal/lora_vector.h"

namespace molly::engine {
namespace {

struct SixteenNeon {
    std::array<float32x4_t, 4> v;

    static SixteenNeon zero() { return same(0); }
    static SixteenNeon same(float value) {
        const float32x4_t four = vdupq_n_f32(value);
        return {{four, four, four, four}};
    }
    static SixteenNeon load(const float* from) {
        return {{vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12)}};
    }
    static SixteenNeon load_half(const std::uint16_t* from) {
        SixteenNeon out;
        for (std::size_t i = 0; i < out.v.size(); ++i)
            out.v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + 4 * i)));
        return out;
    }
    static SixteenNeon load_bytes(const std::int8_t* from) {
        SixteenNeon out;
        for (std::size_t half = 0; half < 2; ++half) {
            const int16x8_t wide = vmovl_s8(vld1_s8(from + 8 * half));
            out.v[2 * half] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
            out.v[2 * half + 1] = vcvtq_f32_s32(vmovl_s16(vget_high_s16(wide)));
        }
        return out;
    }
    static SixteenNeon multiply_add(SixteenNeon a, SixteenNeon b, SixteenNeon c) {
        for (std::size_t i = 0; i < c.v.size(); ++i)
            c.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
        return c;
    }
    float sum() const {
        return vaddvq_f32(vaddq_f32(vaddq_f32(v[0], v[1]), vaddq_f32(v[2], v[3])));
    }
    void add_to(float* to) const {
        for (std::size_t i = 0; i < v.size(); ++i)
            vst1q_f32(to + 4 * i, vaddq_f32(vld1q_f32(to + 4 * i), v[i]));
    }
};

}  // namespace

void lora_neon(const LoraTask& task, const LoraRows& matrix) {
    run_task<SixteenNeon>(task, matrix);
}

}  // namespace molly::engine
#endif
