#include "app/config_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace molly::app {

void Faults::add(const toml::source_region& where, std::string_view path, std::string_view english,
                 std::string_view italian) {
    const auto line = where.begin.line;
    const auto append = [&](std::string& out, std::string_view text) {
        if (!out.empty()) out += '\n';
        out += line > 0 ? fmt::format("{}:{}: ", file_, line) : fmt::format("{}: ", file_);
        if (!path.empty()) out += fmt::format("{}: ", path);
        out += text;
    };
    append(english_, english);
    append(italian_, italian);
}

std::string Reader::below(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const toml::node* Reader::find(std::string_view name) {
    known_.emplace(name);
    return table_.get(name);
}

void Reader::fault(std::string_view name, std::string_view english, std::string_view italian) {
    const toml::node* node = table_.get(name);
    faults_.add(node != nullptr ? node->source() : table_.source(), below(name), english, italian);
}

void Reader::wrong_type(std::string_view name, std::string_view english, std::string_view italian) {
    fault(name, fmt::format("must be {}", english), fmt::format("deve essere {}", italian));
}

void Reader::read(std::string_view name, std::string& out) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (const auto value = node->value_exact<std::string>()) {
        out = *value;
    } else {
        wrong_type(name, "a text in quotes", "un testo fra virgolette");
    }
}

void Reader::read(std::string_view name, bool& out) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    if (const auto value = node->value_exact<bool>()) {
        out = *value;
    } else {
        wrong_type(name, "true or false", "true oppure false");
    }
}

void Reader::read(std::string_view name, double& out, double min, double max) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const auto value = node->is_number() ? node->value<double>() : std::optional<double>();
    if (value && *value >= min && *value <= max) {
        out = *value;
    } else {
        wrong_type(name, fmt::format("a number from {} to {}", min, max),
                   fmt::format("un numero da {} a {}", min, max));
    }
}

std::optional<std::int64_t> Reader::integer(std::string_view name, std::int64_t min,
                                            std::int64_t max) {
    const toml::node* node = find(name);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<std::int64_t>();
    if (value && *value >= min && *value <= max) return value;
    wrong_type(name, fmt::format("a whole number from {} to {}", min, max),
               fmt::format("un numero intero da {} a {}", min, max));
    return std::nullopt;
}

void Reader::read(std::string_view name, std::vector<std::string>& out) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    std::vector<std::string> values;
    bool good = array != nullptr;
    for (std::size_t i = 0; good && i < array->size(); ++i) {
        const auto value = array->get(i)->value_exact<std::string>();
        good = value.has_value();
        if (good) values.push_back(*value);
    }
    if (good) {
        out = std::move(values);
    } else {
        wrong_type(name, "a list of texts, such as [\"a\", \"b\"]",
                   "una lista di testi, come [\"a\", \"b\"]");
    }
}

void Reader::read(std::string_view name, std::map<std::string, std::string, std::less<>>& out) {
    const toml::node* node = find(name);
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        wrong_type(name, "a table of texts", "una tabella di testi");
        return;
    }
    for (const auto& [key, value] : *table) {
        if (const auto text = value.value_exact<std::string>()) {
            out[std::string(key.str())] = *text;
        } else {
            faults_.add(value.source(), below(name) + "." + std::string(key.str()),
                        "must be a text in quotes", "deve essere un testo fra virgolette");
        }
    }
}

void Reader::read(std::string_view name, std::optional<domain::Sensitivity>& out) {
    read_word(name, out, domain::sensitivity_from, "public, standard, private, secret");
}

void Reader::read(std::string_view name, std::optional<domain::Residency>& out) {
    if (!has(name)) {
        known_.emplace(name);
        return;
    }
    std::vector<std::string> places;
    read(name, places);
    out = domain::Residency({places.begin(), places.end()});
}

void Reader::read(std::string_view name, std::optional<domain::TierSet>& out) {
    std::vector<std::string> words;
    read(name, words);
    if (words.empty()) return;
    domain::TierSet tiers;
    for (const std::string& word : words) {
        const auto tier = domain::tier_from(word);
        if (!tier) {
            fault(name, fmt::format("unknown tier \"{}\"; there are T0, T1, T2, T3", word),
                  fmt::format("livello sconosciuto \"{}\"; ci sono T0, T1, T2, T3", word));
            return;
        }
        tiers = tiers | domain::TierSet{*tier};
    }
    out = tiers;
}

void Reader::read_price(std::string_view name, domain::Money& out) {
    double per_million = 0;
    if (!has(name)) {
        known_.emplace(name);
        return;
    }
    read(name, per_million, 0, 1e6);
    out = domain::money_from(per_million / 1e6);
}

std::optional<Reader> Reader::section(std::string_view name) {
    const toml::node* node = find(name);
    if (node == nullptr) return std::nullopt;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
        wrong_type(name, fmt::format("a section: [{}]", below(name)),
                   fmt::format("una sezione: [{}]", below(name)));
        return std::nullopt;
    }
    return Reader(*table, below(name), faults_);
}

std::vector<Reader> Reader::list(std::string_view name) {
    const toml::node* node = find(name);
    if (node == nullptr) return {};
    const toml::array* array = node->as_array();
    std::vector<Reader> readers;
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
        const toml::table* table = array->get(i)->as_table();
        if (table == nullptr) {
            array = nullptr;
        } else {
            readers.emplace_back(*table, fmt::format("{}[{}]", below(name), i), faults_);
        }
    }
    if (array == nullptr) {
        wrong_type(name, fmt::format("a list of sections: [[{}]]", below(name)),
                   fmt::format("una lista di sezioni: [[{}]]", below(name)));
        return {};
    }
    return readers;
}

void Reader::close() {
    for (const auto& [key, value] : table_) {
        const std::string_view name = key.str();
        if (known_.contains(name)) continue;
        std::string_view nearest;
        std::size_t distance = std::max<std::size_t>(2, name.size() / 3) + 1;
        for (const std::string& candidate : known_) {
            const std::size_t d = edit_distance(name, candidate);
            if (d < distance) {
                distance = d;
                nearest = candidate;
            }
        }
        std::string english = "unknown option";
        std::string italian = "opzione sconosciuta";
        if (!nearest.empty()) {
            english += fmt::format("; did you mean `{}`?", nearest);
            italian += fmt::format("; forse `{}`?", nearest);
        } else {
            english += "; `molly config default` prints every option";
            italian += "; `molly config default` stampa tutte le opzioni";
        }
        faults_.add(key.source(), below(name), english, italian);
    }
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitution = row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            next[j] = std::min({row[j] + 1, next[j - 1] + 1, substitution});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(row);
        row.swap(next);
    }
    return row[b.size()];
}

}  // namespace molly::app
