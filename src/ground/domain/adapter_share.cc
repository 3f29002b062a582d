#include "domain/adapter_share.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace molly::domain {
namespace {

constexpr std::size_t shown_max = 100;  // bytes of a wrong name

std::unexpected<Error> wrong(std::string_view part, std::string_view english,
                             std::string_view italian) {
    const auto shown = part.substr(0, shown_max);
    return fail(Error(ErrorCode::invalid_request,
                      fmt::format("the adapter `{}` {}; several are written law*0.5,style@1.0.0",
                                  shown, english))
                    .param("model")
                    .italian(fmt::format("l'adattatore `{}` {}; più d'uno si scrive "
                                         "law*0.5,style@1.0.0",
                                         shown, italian)));
}

std::unexpected<Error> wrong_scale(std::string_view part) {
    return wrong(part,
                 fmt::format("has a scale that is no number from -{0} to {0}; it was trained at 1, "
                             "so leave the scale out or choose one near it",
                             adapter_scale_max),
                 fmt::format("ha una scala che non è un numero da -{0} a {0}; è stato addestrato "
                             "a 1: toglierla o sceglierne una vicina",
                             adapter_scale_max));
}

Result<AdapterShare> share_from(std::string_view part) {
    AdapterShare share;
    const std::size_t star = part.find('*');
    share.name = part.substr(0, star);
    if (share.name.empty()) return wrong(part, "has no name", "non ha nome");
    if (star == std::string_view::npos) return share;
    const std::string_view number = part.substr(star + 1);
    const char* const end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, share.scale);
    const bool whole = error == std::errc() && rest == end && std::isfinite(share.scale);
    if (!whole || std::abs(share.scale) > adapter_scale_max) return wrong_scale(part);
    return share;
}

/// The shares of one adapter, of whatever version, add up.
bool together_within(const std::vector<AdapterShare>& shares) {
    const auto bare = [](const AdapterShare& share) {
        return std::string_view(share.name).substr(0, share.name.find('@'));
    };
    return std::ranges::all_of(shares, [&](const AdapterShare& one) {
        float sum = 0;
        for (const AdapterShare& other : shares)
            if (bare(other) == bare(one)) sum += other.scale;
        constexpr float rounding = 1e-5F;
        return std::abs(sum) <= adapter_scale_max + rounding;
    });
}

}  // namespace

Result<std::vector<AdapterShare>> adapter_shares_from(std::string_view text) {
    std::vector<AdapterShare> shares;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        if (shares.size() == adapter_shares_max) {
            return wrong(text, fmt::format("names more than {}", adapter_shares_max),
                         fmt::format("ne nomina più di {}", adapter_shares_max));
        }
        TRY(AdapterShare share, share_from(text.substr(at, comma - at)));
        shares.push_back(std::move(share));
        at = comma + 1;
    }
    if (!together_within(shares)) return wrong_scale(text);
    return shares;
}

std::string to_string(const std::vector<AdapterShare>& shares) {
    std::string text;
    for (const AdapterShare& share : shares) {
        if (!text.empty()) text += ',';
        text += share.name;
        if (share.scale != 1) text += fmt::format("*{}", share.scale);
    }
    return text;
}

}  // namespace molly::domain
