#include "gateway/routes.h"

#include <array>

namespace molly::gateway {
namespace {

using dialects::Face;

struct Row {
    std::string_view method;
    std::string_view path;  // one that ends in '/' has a tail
    Route route;
    Face face = Face::openai_chat;
};

constexpr std::array rows = {
    Row{"GET", "/", Route::greeting},
    Row{"HEAD", "/", Route::greeting},
    Row{"POST", "/v1/chat/completions", Route::generate, Face::openai_chat},
    Row{"POST", "/v1/completions", Route::generate, Face::openai_completions},
    Row{"POST", "/v1/responses", Route::generate, Face::openai_responses},
    Row{"GET", "/v1/responses/", Route::stored_response},
    Row{"DELETE", "/v1/responses/", Route::delete_response},
    Row{"POST", "/v1/embeddings", Route::generate, Face::openai_embeddings},
    Row{"GET", "/v1/models", Route::models},
    Row{"GET", "/v1/models/", Route::model},
    Row{"POST", "/v1/messages", Route::generate, Face::anthropic_messages},
    Row{"POST", "/v1/messages/count_tokens", Route::count_tokens},
    Row{"POST", "/api/chat", Route::generate, Face::ollama_chat},
    Row{"POST", "/api/generate", Route::generate, Face::ollama_generate},
    Row{"POST", "/api/embed", Route::generate, Face::ollama_embed},
    Row{"POST", "/api/embeddings", Route::generate, Face::ollama_embed},
    Row{"GET", "/api/tags", Route::ollama_tags},
    Row{"GET", "/api/version", Route::ollama_version},
    Row{"GET", "/api/ps", Route::ollama_running},
    Row{"POST", "/api/show", Route::ollama_show},
    Row{"GET", "/molly/v1/health", Route::health},
    Row{"GET", "/molly/v1/whoami", Route::whoami},
    Row{"GET", "/molly/v1/targets", Route::targets},
    Row{"GET", "/molly/v1/traces", Route::traces},
    Row{"GET", "/molly/v1/traces/", Route::trace},
    Row{"GET", "/molly/v1/receipts/", Route::receipt},
    Row{"POST", "/molly/v1/policy/reload", Route::reload_rules},
    Row{"POST", "/molly/v1/audit/rotate-key", Route::rotate_key},
    Row{"GET", "/molly/v1/keys", Route::keys},
    Row{"POST", "/molly/v1/keys", Route::create_key},
    Row{"DELETE", "/molly/v1/keys/", Route::revoke_key},
    Row{"POST", "/molly/v1/explain", Route::explain},
    Row{"POST", "/molly/v1/declassify", Route::declassify},
    Row{"POST", "/molly/v1/feedback", Route::feedback},
    Row{"GET", "/molly/v1/priors", Route::priors},
    Row{"POST", "/molly/v1/priors", Route::add_priors},
    Row{"POST", "/molly/v1/verify", Route::verify},
    Row{"GET", "/metrics", Route::metrics},
};

bool matches(const Row& row, std::string_view path) noexcept {
    if (row.path == path) return row.path.size() == 1 || !row.path.ends_with('/');
    return row.path.size() > 1 && row.path.ends_with('/') && path.size() > row.path.size() &&
           path.starts_with(row.path);
}

int nibble(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '%' && i + 2 < text.size() && nibble(text[i + 1]) >= 0 &&
                            nibble(text[i + 2]) >= 0;
        if (escape) {
            out += static_cast<char>(nibble(text[i + 1]) * 16 + nibble(text[i + 2]));
            i += 2;
        } else {
            out += text[i] == '+' ? ' ' : text[i];
        }
    }
    return out;
}

}  // namespace

Found find_route(std::string_view method, std::string_view path) {
    Found found;
    for (const Row& row : rows) {
        if (!matches(row, path)) continue;
        if (row.method == method) {
            found.route = row.route;
            found.face = row.face;
            found.tail = row.path.size() == path.size() ? "" : path.substr(row.path.size());
            return found;
        }
        found.route = Route::wrong_method;
        if (!found.allow.empty()) found.allow += ", ";
        found.allow += row.method;
    }
    return found;
}

Shape shape_of(std::string_view path) noexcept {
    if (path.starts_with("/v1/messages")) return Shape::anthropic;
    if (path.starts_with("/v1/")) return Shape::openai;
    if (path.starts_with("/api/")) return Shape::ollama;
    return Shape::molly;
}

std::string query_value(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(pair.size() + 1, query.size()));
        const std::size_t equals = pair.find('=');
        if (pair.substr(0, equals) != name) continue;
        return equals == std::string_view::npos ? std::string()
                                                : percent_decoded(pair.substr(equals + 1));
    }
    return {};
}

}  // namespace molly::gateway
