#include "adapters/manifest.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::adapters {
namespace {

constexpr std::int64_t format = 1;
constexpr std::size_t manifest_bytes_max = 1U << 20U;
constexpr std::size_t version_bytes_max = 64;

json::object base_object(const Base& base) {
    return {{"name", base.name},
            {"sha256", base.hash},
            {"tokenizer_sha256", base.tokenizer_hash},
            {"architecture", base.architecture},
            {"quantization", base.quantization}};
}

json::object label_object(const domain::Label& label) {
    json::object out{{"class", domain::to_string(label.sensitivity)}};
    if (label.residency.constrained()) {
        json::array places;
        for (const auto& place : label.residency.places())
            places.emplace_back(place);
        out["residency"] = std::move(places);
    }
    json::array origins;
    for (const auto& origin : label.origins)
        origins.emplace_back(origin);
    out["origins"] = std::move(origins);
    return out;
}

json::object training_object(const Training& training) {
    json::object details;
    for (const auto& [key, value] : training.details)
        details[key] = value;
    return {{"method", training.method},     {"tool", training.tool},
            {"finished", training.finished}, {"examples_sha256", training.examples_hash},
            {"examples", training.examples}, {"tokens", training.tokens},
            {"steps", training.steps},       {"seed", training.seed},
            {"details", std::move(details)}};
}

json::array evaluation_array(const std::vector<Evaluation>& evaluation) {
    json::array out;
    for (const Evaluation& one : evaluation)
        out.emplace_back(json::object{{"set", one.set},
                                      {"metric", one.metric},
                                      {"base", one.base},
                                      {"adapter", one.adapter},
                                      {"examples", one.examples}});
    return out;
}

json::object component_object(const Component& component) {
    json::object out{{"instructions", component.instructions}};
    const auto schema = parse_json(component.schema);
    if (schema && schema->is_object()) out["schema"] = *schema;
    return out;
}

/// Reads one object; what is missing or of another type is empty.
class Fields {
public:
    explicit Fields(const json::value* value)
        : object_(value != nullptr ? value->if_object() : nullptr) {}

    const json::value* at(std::string_view key) const {
        return object_ != nullptr ? object_->if_contains(key) : nullptr;
    }
    std::string text(std::string_view key) const {
        const json::value* value = at(key);
        if (value == nullptr || !value->is_string()) return {};
        return std::string(std::string_view(value->get_string()));
    }
    template <class Number>
    Number number(std::string_view key) const {
        const json::value* value = at(key);
        if (value == nullptr || !value->is_number()) return {};
        json::error_code error;
        const auto number = value->to_number<Number>(error);
        return error ? Number{} : number;
    }
    std::vector<std::string> texts(std::string_view key) const {
        std::vector<std::string> out;
        for (const json::value* item : items(key))
            if (item->is_string()) out.emplace_back(std::string_view(item->get_string()));
        return out;
    }
    std::vector<const json::value*> items(std::string_view key) const {
        std::vector<const json::value*> out;
        const json::value* value = at(key);
        if (value == nullptr || !value->is_array()) return out;
        for (const json::value& item : value->get_array())
            out.push_back(&item);
        return out;
    }
    const json::object* object() const noexcept { return object_; }

private:
    const json::object* object_;
};

domain::Label label_from(const Fields& fields) {
    domain::Label label;
    // What cannot be read counts as the highest class, not as none.
    label.sensitivity =
        domain::sensitivity_from(fields.text("class")).value_or(domain::Sensitivity::secret);
    if (fields.at("residency") != nullptr) {
        std::set<std::string, std::less<>> places;
        for (auto& place : fields.texts("residency"))
            places.insert(std::move(place));
        label.residency = domain::Residency(std::move(places));
    }
    for (auto& origin : fields.texts("origins"))
        label.origins.insert(std::move(origin));
    return label;
}

Training training_from(const Fields& fields) {
    Training training;
    training.method = fields.text("method");
    training.tool = fields.text("tool");
    training.finished = fields.text("finished");
    training.examples_hash = fields.text("examples_sha256");
    training.examples = fields.number<std::uint64_t>("examples");
    training.tokens = fields.number<std::uint64_t>("tokens");
    training.steps = fields.number<std::uint64_t>("steps");
    training.seed = fields.number<std::uint64_t>("seed");
    const Fields details(fields.at("details"));
    if (details.object() != nullptr) {
        for (const auto& entry : *details.object())
            if (entry.value().is_string())
                training.details[entry.key()] = std::string_view(entry.value().get_string());
    }
    return training;
}

std::vector<Evaluation> evaluation_from(const Fields& fields) {
    std::vector<Evaluation> out;
    for (const json::value* item : fields.items("evaluation")) {
        const Fields one(item);
        out.push_back({.set = one.text("set"),
                       .metric = one.text("metric"),
                       .base = one.number<double>("base"),
                       .adapter = one.number<double>("adapter"),
                       .examples = one.number<std::uint64_t>("examples")});
    }
    return out;
}

Component component_from(const Fields& fields) {
    Component component;
    component.instructions = fields.text("instructions");
    const json::value* schema = fields.at("schema");
    if (schema != nullptr && schema->is_object()) component.schema = molly::to_text(*schema);
    return component;
}

/// One of the dotted parts of a version.
bool plain_identifier(std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '-';
    });
}

bool digits(std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t dot = text.find('.');
        parts.push_back(text.substr(0, dot));
        if (dot == std::string_view::npos) return parts;
        text.remove_prefix(dot + 1);
    }
}

struct Version {
    std::vector<std::string_view> core;
    std::vector<std::string_view> before;  // what stands behind a hyphen: before the release
};

std::optional<Version> parse_version(std::string_view text) {
    if (text.size() > version_bytes_max) return std::nullopt;
    Version version;
    const std::size_t hyphen = text.find('-');
    version.core = split(text.substr(0, hyphen));
    if (hyphen != std::string_view::npos) version.before = split(text.substr(hyphen + 1));
    const auto number = [](std::string_view part) {
        return digits(part) && part.size() <= 9 && (part.size() == 1 || part[0] != '0');
    };
    if (version.core.size() != 3 || !std::ranges::all_of(version.core, number) ||
        !std::ranges::all_of(version.before, plain_identifier))
        return std::nullopt;
    return version;
}

/// Numbers by value and below words, words by their text.
int compare_parts(std::string_view a, std::string_view b) {
    if (digits(a) != digits(b)) return digits(a) ? -1 : 1;
    if (digits(a) && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
}

int compare_lists(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        if (const int order = compare_parts(a[i], b[i]); order != 0) return order;
    return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

}  // namespace

std::string to_text(const Manifest& manifest, bool with_signature) {
    json::array modules;
    for (const auto& module : manifest.modules)
        modules.emplace_back(module);
    json::object out{{"format", format},
                     {"name", manifest.name},
                     {"version", manifest.version},
                     {"domain", manifest.domain},
                     {"base", base_object(manifest.base)},
                     {"rank", manifest.rank},
                     {"alpha", manifest.alpha},
                     {"modules", std::move(modules)},
                     {"tensors", manifest.tensors},
                     {"sha256", manifest.hash},
                     {"bytes", manifest.bytes},
                     {"label", label_object(manifest.label)},
                     {"training", training_object(manifest.training)},
                     {"evaluation", evaluation_array(manifest.evaluation)}};
    if (!manifest.component.empty()) out["component"] = component_object(manifest.component);
    if (with_signature && !manifest.signature.public_key.empty()) {
        out["signature"] = json::object{{"public_key", manifest.signature.public_key},
                                        {"value", manifest.signature.value}};
    }
    return molly::to_text(json::value(std::move(out)));
}

Result<Manifest> manifest_from(std::string_view text) {
    const auto value = parse_json(text, {.bytes_max = manifest_bytes_max, .depth_max = 8});
    if (!value || !value->is_object()) {
        return fail(Error(ErrorCode::corrupt,
                          "this is no manifest of an adapter (a JSON object is expected)")
                        .italian("non è il manifesto di un adattatore (serve un oggetto JSON)"));
    }
    const Fields fields(&*value);
    if (fields.number<std::int64_t>("format") > format) {
        return fail(
            Error(ErrorCode::unsupported,
                  "the manifest of the adapter was written by a newer Molly; update Molly")
                .italian("il manifesto dell'adattatore è di una Molly più recente; aggiornare "
                         "Molly"));
    }
    Manifest manifest;
    manifest.name = fields.text("name");
    manifest.version = fields.text("version");
    manifest.domain = fields.text("domain");
    const Fields base(fields.at("base"));
    manifest.base = {.name = base.text("name"),
                     .hash = base.text("sha256"),
                     .tokenizer_hash = base.text("tokenizer_sha256"),
                     .architecture = base.text("architecture"),
                     .quantization = base.text("quantization")};
    manifest.rank = fields.number<std::uint32_t>("rank");
    manifest.alpha = fields.number<float>("alpha");
    manifest.modules = fields.texts("modules");
    manifest.tensors = fields.number<std::uint32_t>("tensors");
    manifest.hash = fields.text("sha256");
    manifest.bytes = fields.number<std::uint64_t>("bytes");
    // A manifest without a label says nothing about its data: the default of any content.
    if (fields.at("label") != nullptr) manifest.label = label_from(Fields(fields.at("label")));
    manifest.training = training_from(Fields(fields.at("training")));
    manifest.evaluation = evaluation_from(fields);
    manifest.component = component_from(Fields(fields.at("component")));
    const Fields signature(fields.at("signature"));
    manifest.signature = {.public_key = signature.text("public_key"),
                          .value = signature.text("value")};
    return manifest;
}

int compare_versions(std::string_view a, std::string_view b) {
    const auto left = parse_version(a);
    const auto right = parse_version(b);
    if (!left || !right) {
        if (left.has_value() != right.has_value()) return left ? 1 : -1;
        return a.compare(b);
    }
    if (const int order = compare_lists(left->core, right->core); order != 0) return order;
    if (left->before.empty() != right->before.empty()) return left->before.empty() ? 1 : -1;
    return compare_lists(left->before, right->before);
}

Result<void> check_version(std::string_view version) {
    if (parse_version(version)) return {};
    return fail(Error(ErrorCode::invalid_request,
                      "a version has three numbers, such as 1.0.0 or 1.1.0-rc.1")
                    .italian("una versione ha tre numeri, come 1.0.0 o 1.1.0-rc.1")
                    .param("version"));
}

std::pair<std::string, std::string> split_id(std::string_view id) {
    const std::size_t at = id.find('@');
    if (at == std::string_view::npos) return {std::string(id), {}};
    return {std::string(id.substr(0, at)), std::string(id.substr(at + 1))};
}

}  // namespace molly::adapters
