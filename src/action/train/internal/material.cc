#include "train/internal/material.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

namespace molly::train {
namespace {

constexpr double held_out_rows_max = 200;      // more costs time and says little more
constexpr std::uint32_t context_cap = 2048;    // a longer row costs memory that few machines have
constexpr std::uint32_t context_wanted = 256;  // shorter rows multiply badly

}  // namespace

Result<Material> Material::read(const TuningOptions& options, RowKind kind, TextCoder& coder,
                                std::uint32_t context_max) {
    const std::uint32_t context = options.context == 0 ? context_max : options.context;
    Material out;
    TRY(out.examples, read_examples(options.data, kind, coder, context));
    if (!options.held_out.empty()) {
        TRY(out.held_out_examples, read_examples(options.held_out, kind, coder, context));
        for (const Example& example : out.examples.rows)
            out.training.push_back(&example);
        for (const Example& example : out.held_out_examples.rows)
            out.held_out.push_back(&example);
    } else {
        const auto count = static_cast<double>(std::max<std::size_t>(out.examples.rows.size(), 1));
        std::tie(out.training, out.held_out) = split_examples(
            out.examples.rows, std::min(options.held_out_share, held_out_rows_max / count));
    }
    if (out.training.empty()) {
        return fail(
            Error(ErrorCode::invalid_request,
                  fmt::format("{} has no row that fits into {} tokens; {} were longer",
                              options.data.string(), context, out.examples.facts.truncated))
                .italian(fmt::format("{} non ha righe che stiano in {} token; {} erano più lunghe",
                                     options.data.string(), context, out.examples.facts.truncated))
                .param("data"));
    }
    return out;
}

std::uint32_t Material::longest() const noexcept {
    std::size_t most = 1;
    for (const auto* side : {&training, &held_out})
        for (const Example* example : *side)
            most = std::max({most, example->better.tokens.size(), example->worse.tokens.size()});
    return static_cast<std::uint32_t>(most - 1);
}

std::vector<const Sequence*> sequences_of(const std::vector<const Example*>& examples, bool pairs) {
    std::vector<const Sequence*> out;
    for (const Example* example : examples) {
        out.push_back(&example->better);
        if (pairs) out.push_back(&example->worse);
    }
    return out;
}

std::vector<std::size_t> all_rows(const Packing& packing) {
    std::vector<std::size_t> rows(packing.rows());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    return rows;
}

std::uint32_t context_limit(std::uint32_t trained) {
    return trained == 0 ? context_cap : std::min(trained, context_cap);
}

std::uint32_t fitting_context(const TuningOptions& options, const Material& material,
                              std::uint32_t most) {
    if (options.context != 0) return options.context;
    const std::uint32_t longest = (material.longest() + 31) / 32 * 32;
    return std::min(most, std::max(longest, context_wanted));
}

}  // namespace molly::train
