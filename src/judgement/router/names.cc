#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "router/router.h"

namespace molly::router {
namespace {

// How the names of models begin that applications are shipped with.
constexpr std::array<std::string_view, 38> vendor_prefixes = {
    "gpt-",    "gpt-oss",       "chatgpt-",     "text-embedding-", "text-davinci", "davinci",
    "babbage", "codex",         "computer-use", "claude-",         "claude",       "gemini-",
    "gemini",  "gemma",         "llama",        "meta-llama",      "codellama",    "tinyllama",
    "mistral", "mixtral",       "codestral",    "ministral",       "magistral",    "devstral",
    "qwen",    "qwq",           "phi",          "deepseek",        "command-r",    "granite",
    "smollm",  "starcoder",     "nomic-embed",  "mxbai-embed",     "all-minilm",   "bge-",
    "grok-",   "embeddinggemma"};

constexpr std::size_t shown_max = 5;         // known names in an error
constexpr std::size_t shown_bytes_max = 80;  // of the name that was asked for

/// `o1`, `o3-mini`, `o4`: a letter and one digit.
bool reasoning_series(std::string_view name) noexcept {
    const bool digit = name.size() >= 2 && name[1] >= '1' && name[1] <= '9';
    return digit && name[0] == 'o' && (name.size() == 2 || name[2] == '-');
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

bool vendor_name(std::string_view model) {
    // `library/llama3`, `openai/gpt-4o`: the part after the owner counts too.
    const std::string name = lower(model);
    const std::size_t slash = name.rfind('/');
    const std::string_view last = slash == std::string::npos
                                      ? std::string_view(name)
                                      : std::string_view(name).substr(slash + 1);
    const auto begins = [&](std::string_view prefix) { return last.starts_with(prefix); };
    return reasoning_series(last) ||
           std::any_of(vendor_prefixes.begin(), vendor_prefixes.end(), begins);
}

/// The target of this id, or whose model calls itself so.
std::optional<std::string> target_of(std::string_view name, const std::vector<std::string>& known,
                                     const Options& options) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return std::string(name);
    const auto model = options.model_names.find(name);
    if (model == options.model_names.end()) return std::nullopt;
    return model->second;
}

/// A target, or a target and its adapter behind a slash.
std::optional<Wanted> registered(std::string_view model, const std::vector<std::string>& known,
                                 const Options& options) {
    if (model.empty() || model == "auto") return Wanted{};
    if (auto target = target_of(model, known, options))
        return Wanted{.target = *std::move(target), .adapter = {}, .aliased = false};
    for (std::size_t slash = model.find('/'); slash != std::string_view::npos;
         slash = model.find('/', slash + 1)) {
        const std::string_view before = model.substr(0, slash);
        const std::string_view adapter = model.substr(slash + 1);
        const auto target =
            before == "auto" ? std::optional(std::string()) : target_of(before, known, options);
        if (adapter.empty() || !target) continue;
        return Wanted{.target = *target, .adapter = std::string(adapter), .aliased = false};
    }
    return std::nullopt;
}

Error unknown_name(std::string_view model, const std::vector<std::string>& known) {
    std::string some = "auto";
    for (std::size_t i = 0; i < std::min(known.size(), shown_max); ++i)
        some += ", " + known[i];
    if (known.size() > shown_max) some += ", ...";
    const std::string_view shown = model.substr(0, shown_bytes_max);
    return Error(ErrorCode::not_found,
                 fmt::format("no target and no alias is called {}; there are: {}", shown, some))
        .reason("model_not_found")
        .param("model")
        .italian(fmt::format("nessuna destinazione e nessun alias si chiama {}; ci sono: {}", shown,
                             some));
}

}  // namespace

Result<Wanted> resolve_model(const std::string& model, const std::vector<std::string>& known,
                             const Options& options) {
    if (auto wanted = registered(model, known, options)) return *std::move(wanted);
    const auto alias = options.aliases.find(model);
    const bool listed = alias != options.aliases.end();
    const std::string& meant = listed ? alias->second : options.alias_default;
    if (listed || (vendor_name(model) && !meant.empty())) {
        if (auto wanted = registered(meant, known, options)) {
            wanted->aliased = true;
            return *std::move(wanted);
        }
        return fail(
            Error(ErrorCode::not_found,
                  fmt::format("the alias for this model name means {}, and no target is "
                              "called so; mend routing.aliases or routing.alias_default",
                              meant))
                .reason("model_not_found")
                .param("model")
                .italian(fmt::format("l'alias di questo nome di modello indica {}, e nessuna "
                                     "destinazione si chiama così; correggere "
                                     "routing.aliases o routing.alias_default",
                                     meant)));
    }
    return fail(unknown_name(model, known));
}

}  // namespace molly::router
