#include "train/shape.h"

#include <array>
#include <string>

#include <fmt/format.h>

namespace molly::train {
namespace {

constexpr Shape shape(std::uint32_t vocabulary, std::uint32_t embed, std::uint32_t layers,
                      std::uint32_t heads, std::uint32_t key_heads, std::uint32_t feed_forward,
                      std::uint32_t context) {
    Shape made;
    made.vocabulary = vocabulary;
    made.embed = embed;
    made.layers = layers;
    made.heads = heads;
    made.key_heads = key_heads;
    made.feed_forward = feed_forward;
    made.context = context;
    return made;
}

constexpr std::array all_presets = {
    Preset{"tiny", shape(1024, 64, 2, 4, 2, 192, 64), 4, 3e-3F},
    Preset{"nano-2m", shape(4096, 160, 5, 5, 5, 448, 256), 8, 3e-3F},
    Preset{"nano-6m", shape(8192, 256, 6, 4, 2, 704, 256), 8, 2e-3F},
    Preset{"nano-8m", shape(8192, 256, 8, 4, 4, 704, 256), 8, 2e-3F},
    Preset{"19m", shape(12'288, 384, 8, 6, 6, 1024, 256), 8, 1.5e-3F},
    Preset{"46m", shape(16'384, 512, 12, 8, 4, 1536, 512), 16, 1e-3F},
};

}  // namespace

std::uint64_t Shape::parameters() const noexcept {
    const std::uint64_t wide = embed;
    const std::uint64_t attention = 2 * wide * wide + 2 * wide * key_width();
    const std::uint64_t layer = attention + 3 * wide * feed_forward + 2 * wide;
    return wide * vocabulary * (tied ? 1 : 2) + layers * layer + wide;
}

double Shape::flop_per_token() const noexcept {
    const double wide = embed;
    const double attention = 2 * wide * wide + 2 * wide * key_width();
    const double multiplied = layers * (attention + 3 * wide * feed_forward) + wide * vocabulary;
    return 6 * multiplied + 6 * wide * context * layers;
}

Result<void> Shape::check() const {
    const bool present =
        vocabulary > 1 && embed > 0 && layers > 0 && heads > 0 && key_heads > 0 && feed_forward > 0;
    if (!present || context < 2 || embed % heads != 0 || heads % key_heads != 0 ||
        head_width() % 2 != 0) {
        return fail(Error(ErrorCode::invalid_request,
                          "the shape does not fit together: heads must divide the width, key heads "
                          "the heads, and a head must be an even number of dimensions wide")
                        .italian("le dimensioni non si accordano: le teste devono dividere la "
                                 "larghezza, le teste delle chiavi le teste, e una testa deve "
                                 "avere un numero pari di dimensioni"));
    }
    return {};
}

std::span<const Preset> presets() noexcept {
    return all_presets;
}

Result<Preset> find_preset(std::string_view name) {
    std::string names;
    for (const Preset& preset : all_presets) {
        if (preset.name == name) return preset;
        names += (names.empty() ? "" : ", ") + std::string(preset.name);
    }
    return fail(Error(ErrorCode::not_found, fmt::format("no such preset; there are: {}", names))
                    .italian(fmt::format("preset sconosciuto; ci sono: {}", names))
                    .param("preset"));
}

}  // namespace molly::train
