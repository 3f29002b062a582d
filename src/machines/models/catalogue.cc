#include "models/catalogue.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "models/files.h"
#include "models/gguf.h"
#include "models/internal/part.h"
#include "seal/seal.h"

namespace molly::models {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t version = 1;
constexpr std::size_t name_bytes_max = 128;
constexpr std::string_view extension = ".gguf";

/// Held while the catalogue changes, so that another process cannot undo the change.
Result<File> lock_folder(const fs::path& folder) {
    TRY(File file, open_file(folder / "catalogue.lock"));
    if (!models::lock(file, true)) return file_error(folder, "lock");
    return file;
}

std::string text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return std::string(value->get_string().data(), value->get_string().size());
}

std::uint64_t number_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr) return 0;
    json::error_code error;
    const auto number = value->to_number<std::uint64_t>(error);
    return error ? 0 : number;
}

Model model_from(const json::object& object, const fs::path& folder) {
    Model model;
    model.name = text_of(object, "name");
    model.file = folder / (model.name + std::string(extension));
    model.hash = text_of(object, "sha256");
    model.source = text_of(object, "source");
    model.bytes = number_of(object, "bytes");
    model.architecture = text_of(object, "architecture");
    model.quantization = text_of(object, "quantization");
    model.parameters = number_of(object, "parameters");
    model.context_tokens = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(number_of(object, "context_tokens"), UINT32_MAX));
    const json::value* chat = object.if_contains("chat_template");
    model.chat_template = chat != nullptr && chat->is_bool() && chat->get_bool();
    return model;
}

json::object object_of(const Model& model) {
    return {{"name", model.name},
            {"sha256", model.hash},
            {"source", model.source},
            {"bytes", model.bytes},
            {"architecture", model.architecture},
            {"quantization", model.quantization},
            {"parameters", model.parameters},
            {"context_tokens", model.context_tokens},
            {"chat_template", model.chat_template}};
}

std::unexpected<Error> damaged(const fs::path& file) {
    return fail(Error(ErrorCode::corrupt,
                      fmt::format("{} is damaged; remove it and import the models of its folder "
                                  "again: molly models import FILE",
                                  file.string()))
                    .italian(fmt::format("{} è danneggiato; rimuoverlo e importare di nuovo i "
                                         "modelli della cartella: molly models import FILE",
                                         file.string())));
}

/// What the file says of itself. Errors: as read_gguf.
Result<Model> describe(const fs::path& file) {
    TRY(const Gguf gguf, read_gguf(file));
    std::error_code ignored;
    Model model;
    model.bytes = fs::file_size(file, ignored);
    model.architecture = gguf.text("general.architecture");
    model.quantization = gguf.quantization();
    model.parameters = gguf.parameters();
    model.context_tokens = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(gguf.number(model.architecture + ".context_length"), UINT32_MAX));
    model.chat_template = !gguf.text("tokenizer.chat_template").empty();
    return model;
}

}  // namespace

Result<void> check_name(const std::string& name) {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '.' || c == '_' || c == '-';
    });
    if (plain && !name.empty() && name.size() <= name_bytes_max && name.front() != '.') return {};
    return fail(Error(ErrorCode::invalid_request,
                      "a model's name has letters, digits, `.`, `_` and `-`, does not begin with "
                      "`.`, and has at most 128 characters; give one with --name")
                    .italian("il nome di un modello ha lettere, cifre, `.`, `_` e `-`, non inizia "
                             "con `.` e ha al più 128 caratteri; indicarne uno con --name")
                    .param("name"));
}

Error internal::name_taken(const std::string& name) {
    return Error(ErrorCode::conflict,
                 fmt::format("the name {} belongs to another model; give a name with --name, or "
                             "remove that one first",
                             name))
        .italian(fmt::format("il nome {} appartiene a un altro modello; indicarne uno con --name, "
                             "o rimuovere prima quello",
                             name));
}

std::string model_name_of(const std::string& source) {
    std::string name = source.substr(0, source.find_first_of("?#"));
    name = name.substr(name.find_last_of("/:") + 1);
    if (name.ends_with(extension)) name.resize(name.size() - extension.size());
    return name;
}

Result<Catalogue> Catalogue::open(fs::path folder) {
    Catalogue catalogue(folder / "models");
    std::error_code error;
    fs::create_directories(catalogue.folder_, error);
    if (error) {
        return fail(ErrorCode::unavailable,
                    fmt::format("cannot make {}: {}", catalogue.folder_.string(), error.message()));
    }
    TRY_DO(catalogue.reload());
    return catalogue;
}

Result<void> Catalogue::reload() {
    const fs::path file = folder_ / "catalogue.json";
    models_.clear();
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return {};
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto value = parse_json(text);
    if (!value || !value->is_object()) return damaged(file);
    const json::object& object = value->get_object();
    if (number_of(object, "version") > version) {
        return fail(
            Error(ErrorCode::unsupported,
                  fmt::format("{} was written by a newer Molly; update Molly", file.string()))
                .italian(fmt::format("{} è stato scritto da una Molly più recente; "
                                     "aggiornare Molly",
                                     file.string())));
    }
    const json::value* models = object.if_contains("models");
    if (models == nullptr || !models->is_array()) return damaged(file);
    for (const json::value& entry : models->get_array()) {
        if (!entry.is_object()) return damaged(file);
        Model model = model_from(entry.get_object(), folder_);
        if (!check_name(model.name)) return damaged(file);
        models_.push_back(std::move(model));
    }
    return {};
}

Result<void> Catalogue::save() const {
    json::array models;
    for (const Model& model : models_)
        models.emplace_back(object_of(model));
    const json::object catalogue{{"version", version}, {"models", std::move(models)}};
    return replace_file(folder_ / "catalogue.json", to_text(catalogue) + "\n");
}

Result<Model> Catalogue::find(const std::string& name) const {
    const auto found = std::find_if(models_.begin(), models_.end(),
                                    [&](const Model& model) { return model.name == name; });
    if (found != models_.end()) return *found;
    std::vector<std::string_view> names;
    for (const Model& model : models_)
        names.push_back(model.name);
    const std::string known = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
    return fail(Error(ErrorCode::not_found,
                      fmt::format("there is no model {}; here: {}; get more with molly models pull",
                                  name, known))
                    .italian(fmt::format("il modello {} non esiste; qui: {}; altri con molly "
                                         "models pull",
                                         name, names.empty() ? "nessuno" : known)));
}

Result<bool> Catalogue::taken(const std::string& name, const std::string& hash) const {
    const auto known = find(name);
    if (!known) return false;
    if (known->hash == hash) return true;
    return fail(internal::name_taken(name));
}

Result<Model> Catalogue::enter(Model model) {
    model.file = folder_ / (model.name + std::string(extension));
    std::erase_if(models_, [&](const Model& known) { return known.name == model.name; });
    models_.push_back(model);
    TRY_DO(save());
    return model;
}

Result<Model> Catalogue::import(const fs::path& file, std::string name, const Progress& progress) {
    if (name.empty()) name = model_name_of(file.filename().string());
    TRY_DO(check_name(name));
    TRY(Model model, describe(file));
    const std::uint64_t total = model.bytes;
    TRY(const seal::Hash hash, seal::sha256_file(file, [&](std::uint64_t done) {
            if (progress) progress(done, total);
        }));
    model.name = std::move(name);
    model.hash = seal::to_hex(hash);
    model.source = "import";
    TRY(const File lock, lock_folder(folder_));
    TRY_DO(reload());
    TRY(const bool known, taken(model.name, model.hash));
    const fs::path target = folder_ / (model.name + std::string(extension));
    std::error_code ignored;
    if (known && fs::exists(target, ignored)) return find(model.name);
    TRY_DO(link_or_copy(file, target, progress));
    return enter(std::move(model));
}

Result<Model> Catalogue::adopt(const fs::path& part, std::string name, std::string hash,
                               std::string source) {
    TRY_DO(check_name(name));
    TRY(Model model, describe(part));
    model.name = std::move(name);
    model.hash = std::move(hash);
    model.source = std::move(source);
    TRY(const File lock, lock_folder(folder_));
    TRY_DO(reload());
    TRY(const bool known, taken(model.name, model.hash));
    const fs::path target = folder_ / (model.name + std::string(extension));
    std::error_code error;
    fs::rename(part, target, error);
    if (error) {
        errno = error.value();
        return file_error(target, "name");
    }
    if (known) return find(model.name);
    return enter(std::move(model));
}

Result<void> Catalogue::remove(const std::string& name) {
    TRY(const File lock, lock_folder(folder_));
    TRY_DO(reload());
    TRY(const Model model, find(name));
    std::erase_if(models_, [&](const Model& known) { return known.name == name; });
    TRY_DO(save());
    // A file that is gone already is as good as removed; an open one lives on for its reader.
    std::error_code ignored;
    fs::remove(model.file, ignored);
    return {};
}

}  // namespace molly::models
