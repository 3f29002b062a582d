#pragma once
// Which path means what. Pure.
#include <cstdint>
#include <string>
#include <string_view>

#include "dialects/dialects.h"

namespace molly::gateway {

/// What the caller of a path expects errors to look like.
enum class Shape : std::uint8_t { openai, anthropic, ollama, molly };

enum class Route : std::uint8_t {
    unknown,
    wrong_method,
    greeting,
    generate,
    count_tokens,
    stored_response,
    delete_response,
    models,
    model,
    ollama_tags,
    ollama_version,
    ollama_running,
    ollama_show,
    health,
    whoami,
    targets,
    traces,
    trace,
    receipt,
    rotate_key,
    reload_rules,
    keys,
    create_key,
    revoke_key,
    explain,
    declassify,
    feedback,
    priors,
    verify,
    add_priors,
    metrics,
};

struct Found {
    Route route = Route::unknown;
    dialects::Face face = dialects::Face::openai_chat;  ///< of generate
    std::string tail;   ///< what follows the pattern: an id or a model name
    std::string allow;  ///< methods of the path, for wrong_method
};

Found find_route(std::string_view method, std::string_view path);

Shape shape_of(std::string_view path) noexcept;

/// The value of `name` in a raw query, percent-decoded; empty when it is absent.
std::string query_value(std::string_view query, std::string_view name);

}  // namespace molly::gateway
