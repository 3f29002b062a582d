#include "adapters/internal/shelf.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "models/files.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".json";
constexpr std::size_t history_max = 1000;  // promotions that a rollback can go back through

/// The file's text; empty when there is none.
Result<std::string> read_text(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::error_code ignored;
    if (!stream.is_open() && !fs::exists(file, ignored)) return std::string();
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream && !stream.eof()) return models::file_error(file, "read");
    return text;
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        if (!line.empty()) lines.emplace_back(line);
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return lines;
}

template <class Lines>
std::string text_of(const Lines& lines) {
    std::string text;
    for (const auto& line : lines)
        text += line + "\n";
    return text;
}

}  // namespace

Result<Shelf> Shelf::read(const fs::path& folder) {
    Shelf shelf(folder);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string file = entry.path().filename().string();
        if (!file.ends_with(extension)) continue;
        const std::string version = file.substr(0, file.size() - extension.size());
        TRY(const std::string text, read_text(entry.path()));
        auto manifest = manifest_from(text);
        const bool sound = manifest && manifest->version == version &&
                           manifest->name == folder.filename().string();
        if (!sound) {
            return fail(
                Error(ErrorCode::corrupt,
                      fmt::format("{} is damaged; remove it and import the adapter again",
                                  entry.path().string()))
                    .italian(fmt::format("{} è danneggiato; rimuoverlo e importare di nuovo "
                                         "l'adattatore",
                                         entry.path().string())));
        }
        shelf.versions_.emplace(version, *std::move(manifest));
    }
    if (error) {
        return fail(ErrorCode::not_found,
                    fmt::format("there is no adapter {}", folder.filename().string()));
    }
    TRY_DO(shelf.read_history());
    TRY_DO(shelf.read_pins());
    return shelf;
}

Result<void> Shelf::read_history() {
    TRY(const std::string text, read_text(folder_ / "history"));
    history_ = lines_of(text);
    std::erase_if(history_,
                  [&](const std::string& version) { return !versions_.contains(version); });
    return {};
}

Result<void> Shelf::read_pins() {
    TRY(const std::string text, read_text(folder_ / "pins"));
    for (auto& version : lines_of(text))
        if (versions_.contains(version)) pins_.insert(std::move(version));
    return {};
}

Result<void> Shelf::write_history() const {
    return models::replace_file(folder_ / "history", text_of(history_));
}

const Manifest* Shelf::current(std::string_view base_hash) const {
    for (auto version = history_.rbegin(); version != history_.rend(); ++version) {
        const Manifest& manifest = versions_.at(*version);
        if (base_hash.empty() || manifest.base.hash == base_hash) return &manifest;
    }
    return nullptr;
}

Result<void> Shelf::put(const Manifest& manifest) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) {
        return fail(ErrorCode::unavailable,
                    fmt::format("cannot make {}: {}", folder_.string(), error.message()));
    }
    TRY_DO(models::replace_file(folder_ / (manifest.version + std::string(extension)),
                                to_text(manifest) + "\n"));
    versions_.emplace(manifest.version, manifest);
    return {};
}

Result<void> Shelf::promote(const std::string& version) {
    const Manifest* serving = current(versions_.at(version).base.hash);
    if (serving != nullptr && serving->version == version) return {};
    history_.push_back(version);
    if (history_.size() > history_max) history_.erase(history_.begin());
    return write_history();
}

Result<Manifest> Shelf::rollback() {
    if (!history_.empty()) {
        const std::string serving = history_.back();
        const std::string base = versions_.at(serving).base.hash;
        std::vector<std::string> before = history_;
        // All of its promotions in a row: going back must change what serves.
        while (!before.empty() && before.back() == serving)
            before.pop_back();
        const bool any = std::ranges::any_of(before, [&](const std::string& version) {
            return versions_.at(version).base.hash == base;
        });
        if (any) {
            history_ = std::move(before);
            TRY_DO(write_history());
            return *current(base);
        }
    }
    return fail(
        Error(ErrorCode::conflict,
              fmt::format("nothing was promoted before the version of {} that serves; "
                          "promote another one: molly adapters promote NAME@VERSION",
                          folder_.filename().string()))
            .italian(fmt::format("prima della versione attuale di {} non ce n'era un'altra; "
                                 "promuoverne una: molly adapters promote NOME@VERSIONE",
                                 folder_.filename().string())));
}

Result<void> Shelf::pin(const std::string& version, bool pinned) {
    if (pinned) {
        pins_.insert(version);
    } else {
        pins_.erase(version);
    }
    return models::replace_file(folder_ / "pins", text_of(pins_));
}

Result<void> Shelf::remove(const std::string& version) {
    std::erase(history_, version);
    TRY_DO(write_history());
    pins_.erase(version);
    versions_.erase(version);
    std::error_code error;
    fs::remove(folder_ / (version + std::string(extension)), error);
    if (error) {
        return fail(ErrorCode::unavailable, fmt::format("cannot remove {} of {}: {}", version,
                                                        folder_.string(), error.message()));
    }
    if (versions_.empty()) fs::remove_all(folder_, error);
    return {};
}

}  // namespace molly::adapters
