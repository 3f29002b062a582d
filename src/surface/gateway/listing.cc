#include "gateway/listing.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gateway/record_json.h"

namespace molly::gateway {
namespace {

bool in_scope(const members::Scope& scope, const domain::TargetSpec& spec) {
    if (!scope.tiers.contains(spec.tier)) return false;
    return scope.models.empty() ||
           std::any_of(scope.models.begin(), scope.models.end(), [&](const std::string& model) {
               return model == spec.id || model.starts_with(spec.id + "/");
           });
}

constexpr std::size_t adapters_shown_max = 200;  // of one target

/// The target's adapters that the key may use, as model names.
std::vector<std::string> adapter_names(const Exchange& exchange, const domain::TargetSpec& spec) {
    const std::vector<std::string>& scope = exchange.key.scope.models;
    const auto covers = [&](const std::string& name) {
        return scope.empty() || std::ranges::find(scope, name) != scope.end();
    };
    std::vector<std::string> names;
    for (const targets::Target* target : exchange.parts.pipeline.targets()) {
        if (&target->spec() != &spec) continue;
        for (const std::string& adapter : target->adapters(adapters_shown_max)) {
            std::string name = spec.id + "/" + adapter;
            if (covers(spec.id) || covers(name)) names.push_back(std::move(name));
        }
    }
    return names;
}

/// Whether `id` is an adapter of a visible target, perhaps with its version.
bool is_adapter(const Exchange& exchange, std::string_view id) {
    const std::string_view name = id.substr(0, id.find('@'));
    for (const router::TargetView& view : visible_targets(exchange)) {
        if (!id.starts_with(view.spec->id + "/")) continue;
        const std::vector<std::string>& scope = exchange.key.scope.models;
        const bool covered = scope.empty() || std::ranges::any_of(scope, [&](const auto& one) {
                                 return one == view.spec->id || one == name || one == id;
                             });
        for (const targets::Target* target : exchange.parts.pipeline.targets()) {
            if (covered && &target->spec() == view.spec.get() &&
                target->adapter(id.substr(view.spec->id.size() + 1)))
                return true;
        }
    }
    return false;
}

std::vector<std::string> names_of(const Exchange& exchange) {
    std::vector<std::string> names;
    // A key with named models has not been given a free choice among all.
    if (exchange.key.scope.models.empty()) names.emplace_back("auto");
    for (const router::TargetView& view : visible_targets(exchange)) {
        names.push_back(view.spec->id);
        for (std::string& name : adapter_names(exchange, *view.spec))
            names.push_back(std::move(name));
    }
    return names;
}

bool speaks_anthropic(const Exchange& exchange) noexcept {
    return !net::header(exchange.request.headers, "anthropic-version").empty();
}

json::object model_object(const Exchange& exchange, const std::string& name) {
    if (speaks_anthropic(exchange)) {
        return json::object{{"type", "model"},
                            {"id", name},
                            {"display_name", name},
                            {"created_at", "2026-01-01T00:00:00Z"}};
    }
    return json::object{
        {"id", name}, {"object", "model"}, {"created", 1767225600}, {"owned_by", "molly"}};
}

std::string size_name(std::uint64_t parameters) {
    if (parameters == 0) return "";
    const double count = static_cast<double>(parameters);
    return parameters >= 1'000'000'000 ? fmt::format("{:.1f}B", count / 1e9)
                                       : fmt::format("{:.1f}M", count / 1e6);
}

const engine::Description* loaded(const Exchange& exchange, const domain::TargetSpec& spec) {
    return spec.local ? exchange.parts.model : nullptr;
}

json::object ollama_details(const engine::Description* model) {
    json::object out;
    out["parent_model"] = "";
    out["format"] = model != nullptr ? "gguf" : "";
    out["family"] = model != nullptr ? model->architecture : "";
    out["families"] = model != nullptr ? json::array{model->architecture} : json::array{};
    out["parameter_size"] = model != nullptr ? size_name(model->parameters) : "";
    out["quantization_level"] = model != nullptr ? model->quantization : "";
    return out;
}

json::object ollama_model(const Exchange& exchange, const domain::TargetSpec& spec,
                          const std::string& name) {
    const engine::Description* model = loaded(exchange, spec);
    json::object out;
    out["name"] = name;
    out["model"] = name;
    out["modified_at"] = "2026-01-01T00:00:00Z";
    out["size"] = model != nullptr ? model->file_bytes : 0;
    out["digest"] = model != nullptr ? model->hash : "";
    out["details"] = ollama_details(model);
    return out;
}

Error no_model(const Exchange& exchange, std::string_view id) {
    std::string names;
    for (const std::string& name : names_of(exchange))
        names += (names.empty() ? "" : ", ") + name;
    return Error(ErrorCode::not_found,
                 fmt::format("no model is called \"{}\" for this key; there are: {}",
                             id.substr(0, 100), names))
        .reason("model_not_found")
        .param("model");
}

json::array ollama_capabilities(const domain::Capabilities& capabilities) {
    json::array out;
    if (capabilities.chat) out.emplace_back("completion");
    if (capabilities.tools) out.emplace_back("tools");
    if (capabilities.embed) out.emplace_back("embedding");
    if (capabilities.images) out.emplace_back("vision");
    return out;
}

std::string show_text(const Exchange& exchange, const domain::TargetSpec& spec) {
    const engine::Description* model = loaded(exchange, spec);
    const std::string family = model != nullptr ? model->architecture : "remote";
    json::object facts;
    facts["general.architecture"] = family;
    if (model != nullptr) facts["general.parameter_count"] = model->parameters;
    if (model != nullptr) facts[family + ".embedding_length"] = model->embed;
    facts[family + ".context_length"] =
        model != nullptr ? model->context_tokens_max : spec.capabilities.context_tokens_max;
    json::object out;
    out["modelfile"] = "FROM " + spec.id;
    out["parameters"] = "";
    out["template"] = "";
    out["details"] = ollama_details(model);
    out["model_info"] = std::move(facts);
    out["capabilities"] = ollama_capabilities(spec.capabilities);
    out["modified_at"] = "2026-01-01T00:00:00Z";
    return to_text(json::value(std::move(out)));
}

}  // namespace

std::vector<router::TargetView> visible_targets(const Exchange& exchange) {
    std::vector<router::TargetView> views = exchange.parts.pipeline.views();
    std::erase_if(views, [&](const router::TargetView& view) {
        return !in_scope(exchange.key.scope, *view.spec);
    });
    return views;
}

Task<void> list_models(Exchange& exchange) {
    const std::vector<std::string> names = names_of(exchange);
    json::array models;
    for (const std::string& name : names)
        models.push_back(model_object(exchange, name));
    json::object out;
    out["object"] = "list";
    out["data"] = std::move(models);
    if (speaks_anthropic(exchange)) {
        out.erase("object");
        out["has_more"] = false;
        out["first_id"] = names.empty() ? json::value(nullptr) : json::value(names.front());
        out["last_id"] = names.empty() ? json::value(nullptr) : json::value(names.back());
    }
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> show_model(Exchange& exchange, std::string id) {
    const std::vector<std::string> names = names_of(exchange);
    if (speaks_anthropic(exchange)) exchange.shape = Shape::anthropic;
    if (std::find(names.begin(), names.end(), id) == names.end() && !is_adapter(exchange, id)) {
        co_await exchange.send_error(no_model(exchange, id));
        co_return;
    }
    co_await exchange.send_json(to_text(json::value(model_object(exchange, id))));
}

Task<void> list_ollama(Exchange& exchange, bool running) {
    json::array models;
    for (const router::TargetView& view : visible_targets(exchange)) {
        if (running && !view.spec->local) continue;
        std::vector<std::string> names = {view.spec->id};
        if (!running) {
            for (std::string& name : adapter_names(exchange, *view.spec))
                names.push_back(std::move(name));
        }
        for (const std::string& name : names) {
            json::object model = ollama_model(exchange, *view.spec, name);
            if (running) {
                model.erase("modified_at");
                model["expires_at"] = "2318-01-01T00:00:00Z";
                model["size_vram"] = 0;
            }
            models.push_back(std::move(model));
        }
    }
    json::object out;
    out["models"] = std::move(models);
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> show_ollama(Exchange& exchange) {
    const auto body = parse_json(exchange.request.body, exchange.options.json);
    std::string name;
    if (body && body->is_object()) {
        for (const char* field : {"name", "model"}) {
            const json::value* value = body->get_object().if_contains(field);
            if (value != nullptr && value->is_string()) name = std::string(value->get_string());
        }
    }
    constexpr std::string_view latest = ":latest";
    if (name.ends_with(latest)) name.resize(name.size() - latest.size());
    for (const router::TargetView& view : visible_targets(exchange)) {
        const bool adapter = name.starts_with(view.spec->id + "/") && is_adapter(exchange, name);
        if (view.spec->id != name && !adapter) continue;
        co_await exchange.send_json(show_text(exchange, *view.spec));
        co_return;
    }
    co_await exchange.send_error(no_model(exchange, name));
}

}  // namespace molly::gateway
