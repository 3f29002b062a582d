#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "profile/internal/model.h"
#include "profile/training.h"

namespace molly::profile {
namespace {

Error bad_line(std::size_t line, std::string_view why, std::string_view perche) {
    return Error(ErrorCode::invalid_request, fmt::format("line {}: {}", line, why))
        .italian(fmt::format("riga {}: {}", line, perche));
}

std::string text_at(const json::object& row, std::string_view key) {
    const json::value* value = row.if_contains(key);
    const json::string* text = value == nullptr ? nullptr : value->if_string();
    return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::optional<float> number_at(const json::object& row, std::string_view key) {
    const json::value* value = row.if_contains(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    return value->to_number<float>();
}

/// The topics that `row` calls right, by their name or by that of their field.
std::vector<std::uint8_t> topics_of(const json::object& row, const std::vector<Topic>& topics) {
    std::vector<std::uint8_t> right;
    const std::string name = text_at(row, "topic");
    const auto field = domain::field_from(text_at(row, "field"));
    for (std::size_t i = 0; i < topics.size(); ++i) {
        const bool named = !name.empty() && topics[i].name == name;
        if (named || (name.empty() && field && topics[i].field == *field))
            right.push_back(static_cast<std::uint8_t>(i));
    }
    return right;
}

Result<void> add_topic(const json::object& row, std::size_t line, TrainingRows& rows) {
    const auto field = domain::field_from(text_at(row, "field"));
    Topic topic{.name = text_at(row, "topic"), .field = field.value_or(domain::Field::other)};
    if (!field || topic.name.empty() || rows.topics.size() >= topics_max) {
        return fail(bad_line(
            line, fmt::format("a topic needs a name and a field, and there may be {}", topics_max),
            fmt::format("un argomento vuole nome e campo, e possono essere {}", topics_max)));
    }
    rows.topics.push_back(std::move(topic));
    return {};
}

Result<void> add_row(const json::object& row, std::size_t line, TrainingRows& rows) {
    Example example;
    example.text = text_at(row, "text");
    if (example.text.empty()) return add_topic(row, line, rows);
    example.topics = topics_of(row, rows.topics);
    const bool labelled = row.contains("topic") || row.contains("field");
    const std::string task = text_at(row, "task");
    example.task = domain::task_from(task);
    if ((labelled && example.topics.empty()) || (!task.empty() && !example.task)) {
        return fail(bad_line(line, "an unknown topic, field or task; topics are declared first",
                             "argomento, campo o compito sconosciuto; gli argomenti si dichiarano "
                             "prima"));
    }
    example.difficulty = number_at(row, "difficulty");
    if (const json::value* scope = row.if_contains("out_of_scope"); scope && scope->is_bool())
        example.out_of_scope = scope->as_bool();
    example.weight = number_at(row, "weight").value_or(1);
    auto& part = text_at(row, "use") == "calibrate" ? rows.calibrate : rows.train;
    part.push_back(std::move(example));
    return {};
}

}  // namespace

Result<TrainingRows> read_training_rows(const std::filesystem::path& file) {
    std::ifstream in(file);
    if (!in) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file.string()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    TrainingRows rows;
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty()) continue;
        const auto parsed = parse_json(line);
        const json::object* row = parsed ? parsed->if_object() : nullptr;
        if (row == nullptr)
            return fail(bad_line(number, "no JSON object", "non è un oggetto JSON"));
        TRY_DO(add_row(*row, number, rows));
    }
    return rows;
}

}  // namespace molly::profile
