#include "evaluate/score_table.h"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>

#include "base/json.h"

namespace molly::evaluate {
namespace {

// Numbers of a row that are no model's score.
constexpr std::array<std::string_view, 7> no_scores = {"contaminated", "id",   "index", "idx",
                                                       "cluster_id",   "cost", "turn"};

Error bad_row(std::size_t line, std::string_view why, std::string_view perche) {
    return Error(ErrorCode::invalid_request, fmt::format("line {}: {}", line, why))
        .italian(fmt::format("riga {}: {}", line, perche));
}

bool marked(const json::object& row) {
    const json::value* mark = row.if_contains("contaminated");
    if (mark == nullptr) return false;
    return mark->is_bool() ? mark->as_bool() : mark->is_number() && mark->to_number<double>() != 0;
}

using Numbers = std::vector<std::pair<std::string, float>>;

Numbers numbers_of(const json::object& row) {
    Numbers out;
    for (const auto& [key, value] : row) {
        const std::string_view name(key.data(), key.size());
        const bool score = std::find(no_scores.begin(), no_scores.end(), name) == no_scores.end();
        if (score && value.is_number()) out.emplace_back(name, value.to_number<float>());
        if (score && value.is_bool()) out.emplace_back(name, value.as_bool() ? 1.0F : 0.0F);
    }
    return out;
}

/// The numbers inside `key`, or of the row itself.
Numbers numbers_at(const json::object& row, std::string_view key, bool or_row) {
    const json::value* inside = row.if_contains(key);
    if (inside != nullptr && inside->is_object()) return numbers_of(inside->as_object());
    return or_row ? numbers_of(row) : Numbers{};
}

/// Puts `numbers` into the columns, in their order.
bool put(const Numbers& numbers, const std::vector<std::string>& columns,
         std::vector<std::vector<float>>& out) {
    if (numbers.size() != columns.size()) return false;
    for (const auto& [name, number] : numbers) {
        const auto found = std::find(columns.begin(), columns.end(), name);
        if (found == columns.end()) return false;
        out[static_cast<std::size_t>(found - columns.begin())].push_back(number);
    }
    return true;
}

Result<void> add_row(const json::object& row, std::size_t line, ScoreTable& table) {
    if (marked(row)) {
        ++table.dropped;
        return {};
    }
    const json::value* prompt = row.if_contains("prompt");
    if (prompt == nullptr || !prompt->is_string())
        return fail(bad_row(line, "prompt is missing", "manca prompt"));
    const Numbers scores = numbers_at(row, "scores", true);
    const Numbers costs = numbers_at(row, "costs", false);
    if (table.columns.empty()) {
        for (const auto& [name, score] : scores)
            table.columns.push_back(name);
        table.scores.resize(table.columns.size());
        table.costs.resize(costs.empty() ? 0 : table.columns.size());
    }
    const bool priced = !table.costs.empty();
    if (scores.empty() || !put(scores, table.columns, table.scores) ||
        (priced && !put(costs, table.columns, table.costs))) {
        return fail(bad_row(line, "it has not the score columns of the first row",
                            "non ha le colonne di punteggi della prima riga"));
    }
    table.prompts.emplace_back(prompt->as_string().data(), prompt->as_string().size());
    return {};
}

}  // namespace

int ScoreTable::place_of(const std::string& column) const noexcept {
    const auto found = std::find(columns.begin(), columns.end(), column);
    return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

Result<ScoreTable> read_score_table(const std::filesystem::path& file) {
    std::ifstream in(file);
    if (!in) {
        return fail(Error(ErrorCode::not_found, fmt::format("cannot read {}", file.string()))
                        .italian(fmt::format("impossibile leggere {}", file.string())));
    }
    ScoreTable table;
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.empty()) continue;
        const auto parsed = parse_json(line);
        const json::object* row = parsed ? parsed->if_object() : nullptr;
        if (row == nullptr) return fail(bad_row(number, "no JSON object", "non è un oggetto JSON"));
        TRY_DO(add_row(*row, number, table));
    }
    if (table.prompts.size() >= 20 && table.columns.size() >= 2) return table;
    return fail(Error(ErrorCode::invalid_request,
                      "a table needs at least 20 rows and two columns of scores")
                    .italian("una tabella vuole almeno 20 righe e due colonne di punteggi"));
}

}  // namespace molly::evaluate
