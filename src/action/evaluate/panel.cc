#include "evaluate/panel.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace molly::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t line_bytes_max = 1U << 20U;
constexpr std::size_t items_max = 100'000;

std::unexpected<Error> unusable(const fs::path& file, std::size_t line, std::string_view what) {
    const std::string where = line == 0 ? file.string() : fmt::format("{}:{}", file.string(), line);
    return fail(
        Error(ErrorCode::invalid_request,
              fmt::format("{}: {}; make the tasks with tools/specialists/make.py", where, what))
            .italian(fmt::format("{}: riga o file non valido; i compiti si creano con "
                                 "tools/specialists/make.py",
                                 where)));
}

Result<std::string> read_file(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file.string()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    return std::string{std::istreambuf_iterator<char>(stream), {}};
}

const json::string* text_in(const json::value& value, std::string_view key) {
    const auto* object = value.if_object();
    const auto* member = object == nullptr ? nullptr : object->if_contains(key);
    return member == nullptr ? nullptr : member->if_string();
}

domain::Role role_of(std::string_view name) {
    if (name == "system") return domain::Role::system;
    return name == "assistant" ? domain::Role::assistant : domain::Role::user;
}

Result<Item> item_of(const fs::path& file, std::size_t line, std::string_view text) {
    const auto value = parse_json(text, {.bytes_max = line_bytes_max, .depth_max = 32});
    if (!value) return unusable(file, line, "no JSON");
    const auto* object = value->if_object();
    const auto* messages = object == nullptr ? nullptr : object->if_contains("messages");
    if (messages == nullptr || !messages->is_array() || messages->get_array().size() < 2) {
        return unusable(file, line, "no messages");
    }
    Item item;
    const json::array& turns = messages->get_array();
    for (std::size_t i = 0; i < turns.size(); ++i) {
        const auto* role = text_in(turns[i], "role");
        const auto* content = text_in(turns[i], "content");
        if (role == nullptr || content == nullptr) return unusable(file, line, "a turn of no text");
        if (i + 1 < turns.size()) {
            item.question.push_back(domain::text_message(role_of(*role), std::string(*content)));
        } else {
            item.answer = *content;
        }
    }
    auto expected = parse_json(item.answer);
    if (!expected) return unusable(file, line, "an answer that is no JSON");
    item.expected = *std::move(expected);
    if (const auto* slice = text_in(*value, "slice")) item.slice = *slice;
    return item;
}

Result<std::vector<Item>> read_items(const fs::path& file) {
    TRY(const std::string text, read_file(file));
    std::vector<Item> items;
    std::size_t number = 0;
    for (std::size_t from = 0; from < text.size() && items.size() < items_max;) {
        const std::size_t end = std::min(text.find('\n', from), text.size());
        const std::string_view line(text.data() + from, end - from);
        ++number;
        from = end + 1;
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        TRY(Item item, item_of(file, number, line));
        items.push_back(std::move(item));
    }
    return items;
}

}  // namespace

Result<Panel> read_panel(const fs::path& folder) {
    const fs::path card = folder / "task.json";
    TRY(const std::string text, read_file(card));
    const auto value = parse_json(text, {.bytes_max = line_bytes_max, .depth_max = 64});
    if (!value || !value->is_object()) return unusable(card, 0, "no JSON object");
    const json::object& object = value->get_object();
    const auto* schema = object.if_contains("schema");
    if (schema == nullptr) return unusable(card, 0, "no schema");
    Panel panel;
    panel.name = folder.filename().string();
    if (const auto* title = text_in(*value, "title")) panel.title = *title;
    if (const auto* license = text_in(*value, "licence")) panel.license = *license;
    panel.schema = to_text(*schema);
    TRY(panel.held_out, read_items(folder / "held_out.jsonl"));
    TRY(panel.known, read_items(folder / "train.jsonl"));
    if (panel.held_out.empty()) return unusable(folder / "held_out.jsonl", 0, "no rows");
    return panel;
}

Result<std::vector<Panel>> read_panels(const fs::path& folder,
                                       const std::vector<std::string>& only) {
    std::vector<fs::path> folders;
    for (const std::string& name : only)
        folders.push_back(folder / name);
    std::error_code error;
    if (only.empty()) {
        for (const auto& entry : fs::directory_iterator(folder, error)) {
            if (fs::exists(entry.path() / "task.json")) folders.push_back(entry.path());
        }
        std::ranges::sort(folders);
    }
    std::vector<Panel> panels;
    for (const fs::path& one : folders) {
        TRY(Panel panel, read_panel(one));
        panels.push_back(std::move(panel));
    }
    if (!panels.empty()) return panels;
    return fail(Error(ErrorCode::not_found,
                      fmt::format("{} holds no tasks; make them with tools/specialists/make.py",
                                  folder.string()))
                    .italian(fmt::format("in {} non ci sono compiti; si creano con "
                                         "tools/specialists/make.py",
                                         folder.string())));
}

}  // namespace molly::evaluate
