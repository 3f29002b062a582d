// The two conversions that the kernels' tests take from ggml, by the processor's own half type.
#include <cstdint>
#include <cstring>

extern "C" {

std::uint16_t ggml_fp32_to_fp16(float value) {
    const auto half = static_cast<__fp16>(value);
    std::uint16_t bits = 0;
    std::memcpy(&bits, &half, sizeof(bits));
    return bits;
}

float ggml_fp16_to_fp32(std::uint16_t bits) {
    __fp16 half = 0;
    std::memcpy(&half, &bits, sizeof(half));
    return half;
}
}
