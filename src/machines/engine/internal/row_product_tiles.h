#pragma once
// What the vector kernels of row_product.h have in common. Everything depends on the kernel's type,
// which belongs to one file, because the files are compiled for different processors.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/internal/row_product.h"

namespace molly::engine {

/// Whether a layout's weights are signed in memory. Processors multiply unsigned by signed bytes,
/// so the activations may be read with an offset then; else the weights are.
constexpr bool signed_weights(WeightLayout layout) {
    return layout == WeightLayout::q8_0 || layout == WeightLayout::q6_k;
}

/// What takes the offset of the weights out again: times the sum of a block's bytes.
constexpr std::int32_t shift_factor(WeightLayout layout) {
    // 8, over the two lanes that one output's sum is spread over; Q4_K has no offset.
    return layout == WeightLayout::q4_0_by_eight ? -8 / 2 : 1;
}

/// Where one row's parts lie, in bytes from its beginning.
template <class Kernel>
struct RowPlaces {
    explicit RowPlaces(const RowProductTask& task)
        : groups(task.in / numbers_per_step(task.layout)),
          steps(task.in),
          shifts(steps + groups * sizeof(float)),
          lines((shifts + groups * sizeof(std::int32_t) + sizeof(ByteRows::Line) - 1) /
                sizeof(ByteRows::Line)) {}
    std::size_t groups;
    std::size_t steps;
    std::size_t shifts;
    std::size_t lines;
};

/// Rows that are multiplied together.
template <class Kernel, std::size_t Rows>
struct RowTile {
    std::array<const std::uint8_t*, Rows> bytes;
    std::array<float*, Rows> y;
    std::size_t steps = 0;
    std::size_t shifts = 0;

    float step(std::size_t row, std::size_t at) const {
        float step = 0;
        std::memcpy(&step, bytes[row] + steps + at * sizeof(step), sizeof(step));
        return step;
    }
    std::int32_t shift(std::size_t row, std::size_t at) const {
        std::int32_t shift = 0;
        std::memcpy(&shift, bytes[row] + shifts + at * sizeof(shift), sizeof(shift));
        return shift;
    }
    /// One row alone is as fast as the memory, and the processor's own prefetcher the better one.
    template <std::size_t Lines>
    static void fetch_ahead(const std::uint8_t* weights) {
        for (std::size_t line = 0; Rows > 1 && line < Lines; ++line)
            __builtin_prefetch(weights + 64 * line);
    }
};

/// The step of bytes that reach to `largest`; 0 where it would have no inverse.
template <class Kernel>
float byte_step(float largest) {
    return largest < 1e-30F ? 0 : largest / 127;
}

/// `Kernel` has rows_at_once, offsets_activations, to_bytes (32 or 128 numbers with one step) and
/// eight_outputs.
template <class Kernel>
struct RowTiles {
    static constexpr std::size_t cached_bytes = 128U << 10U;  // of weights, while all rows pass by
    using Places = RowPlaces<Kernel>;

    static void to_bytes(const RowProductTask& task, ByteRows& rows) {
        const Places places(task);
        rows.lines.resize(std::max(rows.lines.size(), task.rows * places.lines));
        const std::size_t group = numbers_per_step(task.layout);
        const bool as_unsigned = Kernel::offsets_activations && signed_weights(task.layout);
        for (std::uint32_t row = 0; row < task.rows; ++row) {
            const float* x = task.x + row * task.x_stride;
            std::uint8_t* bytes = rows.lines[row * places.lines].bytes;
            for (std::size_t at = 0; at < places.groups; ++at) {
                float step = 0;
                std::int32_t sum = 0;
                if (group == product_block) {
                    Kernel::template to_bytes<product_block>(x + at * group, as_unsigned,
                                                             bytes + at * group, step, sum);
                } else {
                    Kernel::template to_bytes<4 * product_block>(x + at * group, as_unsigned,
                                                                 bytes + at * group, step, sum);
                }
                sum *= shift_factor(task.layout);
                std::memcpy(bytes + places.steps + at * sizeof(step), &step, sizeof(step));
                std::memcpy(bytes + places.shifts + at * sizeof(sum), &sum, sizeof(sum));
            }
        }
    }

    template <std::size_t Rows>
    static void some_rows(const RowProductTask& task, const ByteRows& rows, std::uint32_t first,
                          std::uint32_t out_begin, std::uint32_t out_end) {
        const Places places(task);
        RowTile<Kernel, Rows> tile;
        tile.steps = places.steps;
        tile.shifts = places.shifts;
        for (std::size_t row = 0; row < Rows; ++row) {
            tile.bytes[row] = rows.lines[(first + row) * places.lines].bytes;
            tile.y[row] = task.y + (first + row) * task.y_stride;
        }
        const std::size_t stride = weight_row_bytes(task.layout, task.in);
        for (std::uint32_t out = out_begin; out < out_end; out += product_outputs)
            Kernel::template eight_outputs<Rows>(task.layout, task.weights + out * stride, stride,
                                                 task.in / product_block, tile, out);
    }

    using SomeRows = void (*)(const RowProductTask&, const ByteRows&, std::uint32_t, std::uint32_t,
                              std::uint32_t);
    template <std::size_t... Rows>
    static constexpr std::array<SomeRows, sizeof...(Rows)> for_each_count(
        std::index_sequence<Rows...> /*counts*/) {
        return {some_rows<Rows + 1>...};
    }

    static void run(const RowProductTask& task, ByteRows& scratch) {
        constexpr std::size_t most = Kernel::rows_at_once;
        constexpr auto by_count = for_each_count(std::make_index_sequence<most>());
        to_bytes(task, scratch);
        const std::size_t group = product_outputs * weight_row_bytes(task.layout, task.in);
        const auto chunk =
            static_cast<std::uint32_t>(std::max<std::size_t>(1, cached_bytes / group)) *
            product_outputs;
        // As many rows at once as go, and the passes as equal as can be.
        const auto passes = static_cast<std::uint32_t>((task.rows + most - 1) / most);
        for (std::uint32_t out = task.out_begin; out < task.out_end; out += chunk) {
            const std::uint32_t end = std::min(out + chunk, task.out_end);
            for (std::uint32_t pass = 0; pass < passes; ++pass) {
                const std::uint32_t first = task.rows * pass / passes;
                const std::uint32_t rows = task.rows * (pass + 1) / passes - first;
                by_count[rows - 1](task, scratch, first, out, end);
            }
        }
    }
};

}  // namespace molly::engine
