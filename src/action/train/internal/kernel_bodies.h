#pragma once
// The bodies of Kernels. Included once by each kernels_*.cc, which the build compiles for its
// instruction set; everything is in an unnamed namespace and calls nothing that the linker could
// share, because a function compiled for AVX-512 must not end up in the baseline.
#include "train/internal/kernels.h"

namespace molly::train {
namespace {

/// e^x for x in [-87, 88] to 2 units in the last place (Cephes expf); smaller x give about 1e-38.
inline float exponential(float x) {
    x = x < -87.0F ? -87.0F : x;
    x = x > 88.0F ? 88.0F : x;
    const float scaled = x * 1.44269504088896341F;
    const auto whole = static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5F : 0.5F));
    const auto n = static_cast<float>(whole);
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    return p * __builtin_bit_cast(float, (whole + 127) << 23);
}

inline float sigmoid(float x) {
    return 1.0F / (1.0F + exponential(-x));
}

void norm_forward(std::size_t rows, std::size_t width, float epsilon, const float* x,
                  const float* weight, float* __restrict out, float* __restrict inverse) {
    for (std::size_t r = 0; r < rows; ++r, x += width, out += width) {
        float sum = 0;
        for (std::size_t i = 0; i < width; ++i)
            sum += x[i] * x[i];
        const float scale = 1.0F / __builtin_sqrtf(sum / static_cast<float>(width) + epsilon);
        inverse[r] = scale;
        for (std::size_t i = 0; i < width; ++i)
            out[i] = x[i] * scale * weight[i];
    }
}

void norm_backward(std::size_t rows, std::size_t width, const float* x, const float* weight,
                   const float* inverse, const float* dout, float* __restrict dx,
                   float* __restrict weight_gradient) {
    for (std::size_t r = 0; r < rows; ++r, x += width, dout += width, dx += width) {
        const float scale = inverse[r];
        float dot = 0;
        for (std::size_t i = 0; i < width; ++i)
            dot += dout[i] * weight[i] * x[i];
        const float back = dot * scale * scale * scale / static_cast<float>(width);
        for (std::size_t i = 0; i < width; ++i)
            dx[i] += dout[i] * weight[i] * scale - x[i] * back;
        if (weight_gradient == nullptr) continue;
        for (std::size_t i = 0; i < width; ++i)
            weight_gradient[i] += dout[i] * x[i] * scale;
    }
}

void rotate(std::size_t rows, std::size_t heads, std::size_t head_width, float direction,
            const float* cosine, const float* sine, float* __restrict x) {
    const std::size_t pairs = head_width / 2;
    for (std::size_t r = 0; r < rows; ++r, cosine += pairs, sine += pairs) {
        for (std::size_t head = 0; head < heads; ++head, x += head_width) {
            for (std::size_t i = 0; i < pairs; ++i) {
                const float a = x[2 * i];
                const float b = x[2 * i + 1];
                const float turn = direction * sine[i];
                x[2 * i] = a * cosine[i] - b * turn;
                x[2 * i + 1] = a * turn + b * cosine[i];
            }
        }
    }
}

void rotate_halves(std::size_t rows, std::size_t heads, std::size_t head_width, float direction,
                   const float* cosine, const float* sine, float* __restrict x) {
    const std::size_t pairs = head_width / 2;
    for (std::size_t r = 0; r < rows; ++r, cosine += pairs, sine += pairs) {
        for (std::size_t head = 0; head < heads; ++head, x += head_width) {
            for (std::size_t i = 0; i < pairs; ++i) {
                const float a = x[i];
                const float b = x[i + pairs];
                const float turn = direction * sine[i];
                x[i] = a * cosine[i] - b * turn;
                x[i + pairs] = a * turn + b * cosine[i];
            }
        }
    }
}

void swiglu_forward(std::size_t count, const float* gate, const float* up, float* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

void swiglu_backward(std::size_t count, const float* gate, const float* up, float* __restrict out,
                     float* __restrict dgate, float* __restrict dup) {
    for (std::size_t i = 0; i < count; ++i) {
        const float g = gate[i];
        const float s = sigmoid(g);
        const float d = out[i];
        dup[i] = d * g * s;
        dgate[i] = d * up[i] * s * (1.0F + g * (1.0F - s));
        out[i] = g * s * up[i];
    }
}

/// gelu(x) = x * sigmoid(1.5957691 * (x + 0.044715 x^3)), the tanh form (Hendrycks, Gimpel, 2016).
struct Gelu {
    float value;
    float slope;
};

inline Gelu gelu(float x) {
    const float inner = 1.5957691216F * (x + 0.044715F * x * x * x);
    const float s = sigmoid(inner);
    const float inner_slope = 1.5957691216F * (1.0F + 0.134145F * x * x);
    return {x * s, s + x * s * (1.0F - s) * inner_slope};
}

void geglu_forward(std::size_t count, const float* gate, const float* up, float* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = gelu(gate[i]).value * up[i];
}

void geglu_backward(std::size_t count, const float* gate, const float* up, float* __restrict out,
                    float* __restrict dgate, float* __restrict dup) {
    for (std::size_t i = 0; i < count; ++i) {
        const Gelu g = gelu(gate[i]);
        const float d = out[i];
        dup[i] = d * g.value;
        dgate[i] = d * up[i] * g.slope;
        out[i] = g.value * up[i];
    }
}

/// The columns of a block that row r sees, as [from, to).
struct Seen {
    std::size_t from;
    std::size_t to;
};

inline Seen seen(const AttentionBlock& block, std::size_t r) {
    const std::size_t first = block.first[r];
    return {first > block.column_start ? first - block.column_start : 0,
            block.row_start + r + 1 - block.column_start};
}

inline void clear(float* from, const float* to) {
    while (from < to)
        *from++ = 0;
}

void softmax(const AttentionBlock& block, float* __restrict scores, float* __restrict log_sum) {
    for (std::size_t r = 0; r < block.rows; ++r, scores += block.stride) {
        const auto [from, to] = seen(block, r);
        float most = scores[from];
        for (std::size_t i = from; i < to; ++i)
            most = scores[i] > most ? scores[i] : most;
        float sum = 0;
        for (std::size_t i = from; i < to; ++i) {
            scores[i] = exponential((scores[i] - most) * block.scale);
            sum += scores[i];
        }
        const float scale = 1.0F / sum;
        for (std::size_t i = from; i < to; ++i)
            scores[i] *= scale;
        clear(scores, scores + from);
        clear(scores + to, scores + block.columns);
        log_sum[r] = most * block.scale + __builtin_logf(sum);
    }
}

void softmax_again(const AttentionBlock& block, float* __restrict scores, const float* log_sum) {
    for (std::size_t r = 0; r < block.rows; ++r, scores += block.stride) {
        const auto [from, to] = seen(block, r);
        const float shift = log_sum[r];
        for (std::size_t i = from; i < to; ++i)
            scores[i] = exponential(scores[i] * block.scale - shift);
        clear(scores, scores + from);
        clear(scores + to, scores + block.columns);
    }
}

void softmax_backward(const AttentionBlock& block, const float* probability, const float* mean,
                      float* __restrict dprobability) {
    for (std::size_t r = 0; r < block.rows; ++r) {
        const float shift = mean[r];
        for (std::size_t i = 0; i < block.columns; ++i)
            dprobability[i] = probability[i] * (dprobability[i] - shift) * block.scale;
        probability += block.stride;
        dprobability += block.stride;
    }
}

double cross_entropy(std::size_t rows, std::size_t width, std::size_t stride, float z,
                     const std::int32_t* targets, const float* weight, float* __restrict logits) {
    double loss = 0;
    for (std::size_t r = 0; r < rows; ++r, logits += stride) {
        if (weight[r] == 0) {
            clear(logits, logits + width);
            continue;
        }
        float most = logits[0];
        for (std::size_t i = 0; i < width; ++i)
            most = logits[i] > most ? logits[i] : most;
        const float wanted = logits[targets[r]];
        float sum = 0;
        for (std::size_t i = 0; i < width; ++i) {
            logits[i] = exponential(logits[i] - most);
            sum += logits[i];
        }
        const float log_sum = most + __builtin_logf(sum);
        loss += static_cast<double>(weight[r]) *
                static_cast<double>(log_sum - wanted + z * log_sum * log_sum);
        const float scale = weight[r] * (1.0F + 2.0F * z * log_sum) / sum;
        for (std::size_t i = 0; i < width; ++i)
            logits[i] *= scale;
        logits[targets[r]] -= weight[r];
    }
    return loss;
}

inline std::uint16_t rounded(float x) {
    const auto bits = __builtin_bit_cast(std::uint32_t, x);
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

void to_bf16(std::size_t count, const float* x, std::uint16_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = rounded(x[i]);
}

/// Without infinities, which weights do not hold.
inline float half_to_float(std::uint16_t half) {
    const std::uint32_t magnitude = (half & 0x7fffU) << 13;
    const std::uint32_t scaled =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) * 0x1p112F);
    return __builtin_bit_cast(float, scaled | ((half & 0x8000U) << 16));
}

inline std::uint16_t half_at(const std::byte* from) {
    std::uint16_t half = 0;
    __builtin_memcpy(&half, from, sizeof half);
    return half;
}

void from_f16(std::size_t count, const std::byte* row, float* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = half_to_float(half_at(row + 2 * i));
}

inline void put(float value, float& out) {
    out = value;
}
inline void put(float value, std::uint16_t& out) {
    out = rounded(value);
}

template <class Out>
inline void read_q8_0(std::size_t count, const std::byte* row, Out* __restrict out) {
    for (std::size_t start = 0; start < count; start += 32, row += 34) {
        const float scale = half_to_float(half_at(row));
        for (std::size_t i = 0; i < 32; ++i)
            put(scale * static_cast<float>(static_cast<std::int8_t>(row[2 + i])), out[start + i]);
    }
}

template <class Out>
inline void read_q4_0(std::size_t count, const std::byte* row, Out* __restrict out) {
    for (std::size_t start = 0; start < count; start += 32, row += 18) {
        const float scale = half_to_float(half_at(row));
        for (std::size_t i = 0; i < 16; ++i)
            put(scale * static_cast<float>((static_cast<std::int32_t>(row[2 + i]) & 15) - 8),
                out[start + i]);
        for (std::size_t i = 0; i < 16; ++i)
            put(scale * static_cast<float>((static_cast<std::int32_t>(row[2 + i]) >> 4) - 8),
                out[start + 16 + i]);
    }
}

void from_q8_0(std::size_t count, const std::byte* row, float* out) {
    read_q8_0(count, row, out);
}
void from_q4_0(std::size_t count, const std::byte* row, float* out) {
    read_q4_0(count, row, out);
}
void q8_0_to_bf16(std::size_t count, const std::byte* row, std::uint16_t* out) {
    read_q8_0(count, row, out);
}
void q4_0_to_bf16(std::size_t count, const std::byte* row, std::uint16_t* out) {
    read_q4_0(count, row, out);
}

void drop(std::size_t count, std::uint64_t key, float share, const float* x,
          float* __restrict out) {
    const float scale = 1.0F / (1.0F - share);
    const auto limit = static_cast<std::uint32_t>(static_cast<double>(share) * 4294967296.0);
    for (std::size_t i = 0; i < count; ++i) {
        // Murmur's finalizer over the place.
        auto hash = static_cast<std::uint32_t>(key) + static_cast<std::uint32_t>(i) * 0x9e3779b9U;
        hash ^= static_cast<std::uint32_t>(key >> 32U);
        hash = (hash ^ (hash >> 16U)) * 0x85ebca6bU;
        hash = (hash ^ (hash >> 13U)) * 0xc2b2ae35U;
        hash ^= hash >> 16U;
        out[i] = hash < limit ? 0.0F : x[i] * scale;
    }
}

double dot(std::size_t count, const float* a, const float* b) {
    // Float inside a piece, double between pieces: quick, and exact enough for a norm.
    double total = 0;
    for (std::size_t start = 0; start < count; start += 1024) {
        const std::size_t end = start + 1024 < count ? start + 1024 : count;
        float sum = 0;
        for (std::size_t i = start; i < end; ++i)
            sum += a[i] * b[i];
        total += static_cast<double>(sum);
    }
    return total;
}

void add(std::size_t count, const float* x, float* __restrict out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] += x[i];
}

void adam(std::size_t count, const AdamStep& step, const float* gradient, float* __restrict weight,
          float* __restrict first, float* __restrict second) {
    const AdamStep s = step;
    for (std::size_t i = 0; i < count; ++i) {
        const float g = gradient[i] * s.gradient_scale;
        first[i] = s.beta_1 * first[i] + (1.0F - s.beta_1) * g;
        second[i] = s.beta_2 * second[i] + (1.0F - s.beta_2) * g * g;
        const float move =
            first[i] * s.correction_1 / (__builtin_sqrtf(second[i] * s.correction_2) + s.epsilon);
        weight[i] -= s.rate * (move + s.decay * weight[i]);
    }
}

constexpr Kernels make_kernels(const char* name) {
    return {name,
            norm_forward,
            norm_backward,
            rotate,
            rotate_halves,
            swiglu_forward,
            swiglu_backward,
            geglu_forward,
            geglu_backward,
            softmax,
            softmax_again,
            softmax_backward,
            cross_entropy,
            to_bf16,
            from_f16,
            from_q8_0,
            from_q4_0,
            q8_0_to_bf16,
            q4_0_to_bf16,
            drop,
            dot,
            add,
            adam};
}

}  // namespace
}  // namespace molly::train
