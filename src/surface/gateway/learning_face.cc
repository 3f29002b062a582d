#include "gateway/learning_face.h"

#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gateway/record_json.h"

namespace molly::gateway {
namespace {

constexpr std::size_t rows_max = 100'000;

Error bad_field(std::string field, std::string_view english, std::string_view italian) {
    Error error(ErrorCode::invalid_request, fmt::format("{}: {}", field, english));
    return std::move(error).param(field).italian(fmt::format("{}: {}", field, italian));
}

Error admins_only() {
    return Error(ErrorCode::denied, "only an admin key may do this")
        .reason("admin_only")
        .italian("solo una chiave di amministrazione può farlo");
}

std::string text_at(const json::object* object, std::string_view key) {
    const json::value* value = object == nullptr ? nullptr : object->if_contains(key);
    const json::string* text = value == nullptr ? nullptr : value->if_string();
    return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::optional<double> number_at(const json::object* object, std::string_view key) {
    const json::value* value = object == nullptr ? nullptr : object->if_contains(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    return value->to_number<double>();
}

struct Judgement {
    std::string receipt;
    double score = 0;
};

Result<Judgement> judgement_of(const Exchange& exchange) {
    TRY(const json::value parsed, parse_json(exchange.request.body, exchange.options.json));
    const json::object* body = parsed.if_object();
    Judgement judgement{.receipt = text_at(body, "receipt"), .score = 0};
    if (judgement.receipt.empty())
        return fail(bad_field("receipt", "name the answer's receipt", "indicare la ricevuta"));
    const std::string thumb = text_at(body, "thumb");
    const auto score = number_at(body, "score");
    if (score && *score >= 0 && *score <= 1) {
        judgement.score = *score;
    } else if (!score && (thumb == "up" || thumb == "down")) {
        judgement.score = thumb == "up" ? 1 : 0;
    } else {
        return fail(bad_field("score", "give a score from 0 to 1, or a thumb: up or down",
                              "dare un voto da 0 a 1, o un thumb: up o down"));
    }
    return judgement;
}

bool may_see(const members::Key& key, const domain::Trace& trace) {
    if (key.scope.admin || trace.key_id == key.id) return true;
    return !key.scope.member.empty() && trace.member == key.scope.member;
}

Task<Result<void>> judge(Exchange& exchange) {
    CO_TRY(const Judgement judgement, judgement_of(exchange));
    auto trace = co_await exchange.parts.store.trace(judgement.receipt);
    if (!trace || !may_see(exchange.key, *trace)) {
        co_return fail(Error(ErrorCode::not_found, "there is no such receipt for this key")
                           .param("receipt")
                           .italian("per questa chiave non c'è questa ricevuta"));
    }
    co_return co_await exchange.parts.pipeline.judge(*std::move(trace), judgement.score);
}

Result<router::EstimateRow> row_of(const json::value& value, std::size_t number) {
    const json::object* object = value.if_object();
    const auto field = domain::field_from(text_at(object, "field"));
    const auto band = domain::band_from(text_at(object, "band"));
    const auto mean = number_at(object, "mean");
    const auto weight = number_at(object, "weight");
    const std::string target = text_at(object, "target");
    const bool sound = field && band && mean && weight && !target.empty() && *mean >= 0 &&
                       *mean <= 1 && *weight > 0 && *weight <= 1e6;
    if (!sound) {
        return fail(bad_field(fmt::format("rows[{}]", number),
                              "needs target, field, band, mean (0 to 1) and weight (above 0)",
                              "vuole target, field, band, mean (da 0 a 1) e weight (sopra 0)"));
    }
    return router::EstimateRow{.target = target,
                               .adapter = text_at(object, "adapter"),
                               .field = *field,
                               .band = *band,
                               .mean = *mean,
                               .weight = *weight,
                               .updated = {}};
}

/// What is imported: estimates, and judged answers with their confidence.
struct Imported {
    std::vector<router::EstimateRow> estimates;
    std::vector<router::SureRow> confidences;
};

/// A judged answer: target, adapter, field, confidence and where that comes from, score.
Result<router::SureRow> sure_row_of(const json::value& value, std::size_t number) {
    const json::object* object = value.if_object();
    const auto field = domain::field_from(text_at(object, "field"));
    const auto sureness = number_at(object, "confidence");
    const auto score = number_at(object, "score");
    const std::string target = text_at(object, "target");
    const std::string source = text_at(object, "confidence_from");
    const auto from = domain::confidence_source_from(source.empty() ? "logprobs" : source);
    const bool sound = field && sureness && score && from && !target.empty() && *sureness >= 0 &&
                       *sureness <= 1 && *score >= 0 && *score <= 1;
    if (!sound) {
        return fail(bad_field(
            fmt::format("rows[{}]", number),
            "needs target, field, confidence and score (0 to 1); confidence_from, if it is there, "
            "is logprobs, samples, verifier or stated",
            "vuole target, field, confidence e score (da 0 a 1); confidence_from, se c'è, è "
            "logprobs, samples, verifier o stated"));
    }
    return router::SureRow{
        .meter = {.target = target, .adapter = text_at(object, "adapter"), .from = *from},
        .field = *field,
        .bin = router::bin_of(*sureness),
        .mean = *score,
        .weight = number_at(object, "weight").value_or(1),
        .updated = {}};
}

Result<Imported> rows_of(const Exchange& exchange) {
    TRY(const json::value parsed, parse_json(exchange.request.body, exchange.options.json));
    const json::object* body = parsed.if_object();
    const json::value* list = body == nullptr ? nullptr : body->if_contains("rows");
    if (list == nullptr || !list->is_array() || list->get_array().size() > rows_max) {
        return fail(bad_field("rows", "a list of at most 100000 rows is needed",
                              "serve una lista di al massimo 100000 righe"));
    }
    Imported imported;
    std::size_t number = 0;
    for (const json::value& value : list->get_array()) {
        const json::object* object = value.if_object();
        if (object != nullptr && object->contains("confidence")) {
            TRY(router::SureRow row, sure_row_of(value, number));
            imported.confidences.push_back(std::move(row));
        } else {
            TRY(router::EstimateRow row, row_of(value, number));
            imported.estimates.push_back(std::move(row));
        }
        ++number;
    }
    return imported;
}

Task<Result<std::size_t>> add(Exchange& exchange) {
    if (!exchange.key.scope.admin) co_return fail(admins_only());
    CO_TRY(Imported rows, rows_of(exchange));
    const std::size_t count = rows.estimates.size() + rows.confidences.size();
    if (!rows.estimates.empty())
        CO_TRY_DO(co_await exchange.parts.pipeline.learn(std::move(rows.estimates)));
    if (!rows.confidences.empty())
        CO_TRY_DO(co_await exchange.parts.pipeline.learn_confidence(std::move(rows.confidences)));
    co_return count;
}

json::array lines_of(const Exchange& exchange, double precision) {
    json::array out;
    for (const pipeline::Pipeline::Line& line : exchange.parts.pipeline.lines(precision)) {
        json::object one{{"target", line.meter.target},
                         {"adapter", line.meter.adapter},
                         {"confidence_from", std::string(to_string(line.meter.from))},
                         {"field", line.field ? std::string(to_string(*line.field)) : ""},
                         {"evidence", line.evidence}};
        if (line.threshold) {
            one["confidence_min"] = line.threshold->confidence_min;
            one["precision"] = line.threshold->precision;
            one["precision_lower"] = line.threshold->lower;
            one["accepted"] = line.threshold->accepted;
        }
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace

Task<void> give_feedback(Exchange& exchange) {
    const auto judged = co_await judge(exchange);
    if (!judged) {
        co_await exchange.send_error(judged.error());
        co_return;
    }
    co_await exchange.send_json("{\"learned\":true}");
}

Task<void> list_priors(Exchange& exchange) {
    if (!exchange.key.scope.admin) {
        const Error error = admins_only();
        co_await exchange.send_error(error);
        co_return;
    }
    json::array rows;
    for (const router::EstimateRow& row : exchange.parts.pipeline.estimates()) {
        rows.push_back(json::object{{"target", row.target},
                                    {"adapter", row.adapter},
                                    {"field", std::string(to_string(row.field))},
                                    {"band", std::string(to_string(row.band))},
                                    {"mean", row.mean},
                                    {"weight", row.weight},
                                    {"updated", to_time(row.updated)}});
    }
    json::object out;
    out["rows"] = std::move(rows);
    json::array confidences;
    for (const router::SureRow& row : exchange.parts.pipeline.confidences()) {
        confidences.push_back(
            json::object{{"target", row.meter.target},
                         {"adapter", row.meter.adapter},
                         {"confidence_from", std::string(to_string(row.meter.from))},
                         {"field", std::string(to_string(row.field))},
                         {"from", row.bin / double{router::Confidences::bins}},
                         {"mean", row.mean},
                         {"weight", row.weight},
                         {"updated", to_time(row.updated)}});
    }
    out["confidences"] = std::move(confidences);
    if (const std::string wanted = query_value(exchange.request.query, "precision");
        !wanted.empty()) {
        const double precision = std::strtod(wanted.c_str(), nullptr);
        if (!(precision > 0 && precision < 1)) {
            const Error error =
                bad_field("precision", "must be between 0 and 1", "deve essere fra 0 e 1");
            co_await exchange.send_error(error);
            co_return;
        }
        out["lines"] = lines_of(exchange, precision);
    }
    co_await exchange.send_json(to_text(json::value(std::move(out))));
}

Task<void> add_priors(Exchange& exchange) {
    const auto added = co_await add(exchange);
    if (!added) {
        co_await exchange.send_error(added.error());
        co_return;
    }
    co_await exchange.send_json(fmt::format("{{\"learned\":{}}}", *added));
}

}  // namespace molly::gateway
