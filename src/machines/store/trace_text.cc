#include "store/trace_text.h"

#include "store/internal/object_text.h"

namespace molly::store {
namespace {

using domain::Attempt;
using domain::Candidate;
using domain::Label;
using domain::Trace;
using domain::Usage;
using internal::append_tiers;
using internal::ObjectText;

void append_label(std::string& out, const Label& label) {
    ObjectText object(out);
    object.text("class", domain::to_string(label.sensitivity));
    if (label.residency.constrained()) object.texts("residency", label.residency.places());
    if (!label.origins.empty()) object.texts("origins", label.origins);
}

void append_usage(std::string& out, const Usage& usage) {
    ObjectText object(out);
    object.some_number("prompt", usage.prompt_tokens);
    object.some_number("cached", usage.cached_tokens);
    object.some_number("answer", usage.answer_tokens);
    object.some_number("reasoning", usage.reasoning_tokens);
    if (usage.source != Usage::Source::none) object.text("source", to_string(usage.source));
}

void append_signal(std::string& out, const domain::Signal& signal) {
    ObjectText object(out);
    object.text("source", signal.source);
    object.text("class", to_string(signal.sensitivity));
    if (signal.count != 1) object.number("count", signal.count);
}

void append_capability(std::string& out, const domain::CapabilityProfile& needs) {
    ObjectText object(out);
    object.some_number("prompt_tokens", needs.prompt_tokens);
    object.some_number("answer_tokens", needs.answer_tokens);
    object.some_flag("tools", needs.tools);
    object.some_flag("json_schema", needs.json_schema);
    object.some_flag("images", needs.images);
    object.some_flag("logprobs", needs.logprobs);
    if (!needs.classified) return;
    object.text("task", to_string(needs.task));
    object.some_number("task_share", needs.task_share);
    object.number("difficulty", needs.difficulty);
    object.some_number("out_of_scope", needs.out_of_scope);
    ObjectText fields(object.name("fields"));
    for (std::size_t i = 0; i < domain::fields_count; ++i) {
        // What is hardly there is left out.
        if (needs.fields[i] >= 0.01F)
            fields.number(to_string(static_cast<domain::Field>(i)), needs.fields[i]);
    }
}

void append_candidate(std::string& out, const Candidate& candidate) {
    ObjectText object(out);
    object.text("target", candidate.target);
    object.some_text("adapter", candidate.adapter);
    object.text("tier", to_string(candidate.tier));
    object.some_text("excluded_by", candidate.excluded_by);
    object.some_number("quality", candidate.quality);
    object.some_number("mean", candidate.mean);
    object.some_number("evidence", candidate.evidence);
    object.some_flag("specialist", candidate.specialist);
    object.some_number("weight", candidate.weight);
    object.some_number("cost_nano", candidate.cost.nano);
    object.some_number("latency_ms", candidate.latency.count());
    object.some_number("score", candidate.score);
}

void append_decision(std::string& out, const domain::Decision& decision) {
    ObjectText object(out);
    object.text("rule", decision.rule);
    append_tiers(object.name("permitted"), decision.permitted);
    if (decision.residency.constrained()) object.texts("residency", decision.residency.places());
    object.text("mode", to_string(decision.mode));
    object.some_text("t3_closed", decision.t3_closed);
    object.array("candidates", decision.candidates, append_candidate);
}

void append_redactions(std::string& out, const domain::Redactions& redactions) {
    ObjectText object(out);
    for (const auto& [kind, count] : redactions)
        object.number(to_string(kind), count);
}

void append_attempt(std::string& out, const Attempt& attempt) {
    ObjectText object(out);
    object.text("target", attempt.target);
    object.some_text("adapter", attempt.adapter);
    object.text("tier", to_string(attempt.tier));
    object.some_text("endpoint", attempt.endpoint);
    object.some_flag("peer_authenticated", attempt.peer_authenticated);
    object.some_number("bytes_sent", attempt.bytes_sent);
    object.some_number("bytes_received", attempt.bytes_received);
    if (attempt.failed) object.text("failed", to_string(*attempt.failed));
    object.some_text("failure", attempt.failure);
    append_usage(object.name("usage"), attempt.usage);
    object.some_number("cost_nano", attempt.cost.nano);
    object.some_number("first_token_us", attempt.first_token.count());
    object.some_number("duration_us", attempt.duration.count());
    if (!attempt.redactions.empty())
        append_redactions(object.name("redactions"), attempt.redactions);
    if (attempt.confidence) object.number("confidence", *attempt.confidence);
    if (attempt.confidence && attempt.confidence_from != domain::ConfidenceSource::logprobs)
        object.text("confidence_from", to_string(attempt.confidence_from));
    object.some_flag("rejected", attempt.rejected);
    if (attempt.cause != domain::Cause::step) object.text("cause", to_string(attempt.cause));
    object.some_number("drafted", attempt.drafted);
    object.some_number("accepted", attempt.accepted);
}

void append_declassification(std::string& out, const domain::Declassification& act) {
    ObjectText object(out);
    object.text("from", to_string(act.from));
    object.text("to", to_string(act.to));
    object.text("reason", act.reason);
}

void append_request(ObjectText& object, const Trace& trace) {
    object.text("id", trace.id);
    object.number("time_us", std::chrono::duration_cast<std::chrono::microseconds>(
                                 trace.time.time_since_epoch())
                                 .count());
    object.some_text("dialect", trace.dialect);
    object.text("operation", to_string(trace.operation));
    object.some_flag("stream", trace.stream);
    object.some_text("member", trace.member);
    object.some_text("key", trace.key_id);
    object.some_text("app", trace.app);
    object.some_text("model_asked", trace.model_asked);
    object.some_text("conversation", trace.conversation);
    append_label(object.name("label"), trace.label);
    object.array("signals", trace.signals, append_signal);
    object.some_flag("declassified", trace.declassified);
    append_capability(object.name("needs"), trace.capability);
}

/// Reads members of an object, with the default for what is absent or of another type.
class Reader {
public:
    explicit Reader(const json::value& value) : object_(value.if_object()) {}

    const json::value* find(std::string_view key) const {
        return object_ == nullptr ? nullptr : object_->if_contains(key);
    }
    std::string text(std::string_view key) const {
        const json::value* value = find(key);
        const json::string* text = value == nullptr ? nullptr : value->if_string();
        return text == nullptr ? std::string() : std::string(text->data(), text->size());
    }
    bool flag(std::string_view key) const {
        const json::value* value = find(key);
        const bool* flag = value == nullptr ? nullptr : value->if_bool();
        return flag != nullptr && *flag;
    }
    template <class Number>
    Number number(std::string_view key, Number otherwise = {}) const {
        const json::value* value = find(key);
        if (value == nullptr || !value->is_number()) return otherwise;
        json::error_code error;
        if constexpr (std::is_floating_point_v<Number>) {
            return value->to_number<Number>(error);
        } else {
            const Number number = value->to_number<Number>(error);
            return error ? otherwise : number;
        }
    }
    /// The value of an enumeration by its name; `last` is its last value.
    template <class Enum>
    std::optional<Enum> choice(std::string_view key, Enum last) const {
        const std::string name = text(key);
        for (int i = 0; i <= static_cast<int>(last); ++i) {
            const auto value = static_cast<Enum>(i);
            if (to_string(value) == name) return value;
        }
        return std::nullopt;
    }
    template <class Visit>
    void each(std::string_view key, const Visit& visit) const {
        const json::value* value = find(key);
        const json::array* array = value == nullptr ? nullptr : value->if_array();
        if (array == nullptr) return;
        for (const json::value& element : *array)
            visit(element);
    }
    Reader inside(std::string_view key) const {
        static const json::value none;
        const json::value* value = find(key);
        return Reader(value == nullptr ? none : *value);
    }

private:
    const json::object* object_;
};

std::set<std::string, std::less<>> read_texts(const Reader& reader, std::string_view key) {
    std::set<std::string, std::less<>> texts;
    reader.each(key, [&](const json::value& value) {
        if (const json::string* text = value.if_string()) texts.emplace(text->data(), text->size());
    });
    return texts;
}

domain::Residency read_residency(const Reader& reader) {
    if (reader.find("residency") == nullptr) return {};
    return domain::Residency(read_texts(reader, "residency"));
}

Label read_label(const Reader& reader) {
    // A class that cannot be read counts as the highest: damage must not widen.
    return {.sensitivity = reader.choice("class", domain::Sensitivity::secret)
                               .value_or(domain::Sensitivity::secret),
            .residency = read_residency(reader),
            .origins = read_texts(reader, "origins")};
}

Usage read_usage(const Reader& reader) {
    return {
        .prompt_tokens = reader.number<std::uint32_t>("prompt"),
        .cached_tokens = reader.number<std::uint32_t>("cached"),
        .answer_tokens = reader.number<std::uint32_t>("answer"),
        .reasoning_tokens = reader.number<std::uint32_t>("reasoning"),
        .source = reader.choice("source", Usage::Source::estimate).value_or(Usage::Source::none)};
}

domain::Tier read_tier(const Reader& reader) {
    return reader.choice("tier", domain::Tier::t3).value_or(domain::Tier::t0);
}

Candidate read_candidate(const Reader& reader) {
    return {.target = reader.text("target"),
            .adapter = reader.text("adapter"),
            .tier = read_tier(reader),
            .excluded_by = reader.text("excluded_by"),
            .quality = reader.number<double>("quality"),
            .mean = reader.number<double>("mean"),
            .evidence = reader.number<double>("evidence"),
            .specialist = reader.flag("specialist"),
            .weight = reader.number<double>("weight"),
            .cost = {reader.number<std::int64_t>("cost_nano")},
            .latency = std::chrono::milliseconds(reader.number<std::int64_t>("latency_ms")),
            .score = reader.number<double>("score")};
}

domain::Decision read_decision(const Reader& reader) {
    domain::Decision decision;
    decision.rule = reader.text("rule");
    reader.each("permitted", [&](const json::value& value) {
        const json::string* name = value.if_string();
        if (name == nullptr) return;
        const auto tier = domain::tier_from({name->data(), name->size()});
        if (tier) decision.permitted = decision.permitted | domain::TierSet{*tier};
    });
    decision.residency = read_residency(reader);
    decision.mode = domain::mode_from(reader.text("mode")).value_or(domain::Mode::balanced);
    decision.t3_closed = reader.text("t3_closed");
    reader.each("candidates", [&](const json::value& value) {
        decision.candidates.push_back(read_candidate(Reader(value)));
    });
    return decision;
}

domain::Redactions read_redactions(const Reader& reader) {
    domain::Redactions redactions;
    for (std::size_t i = 0; i < domain::finding_kinds; ++i) {
        const auto kind = static_cast<domain::FindingKind>(i);
        const auto count = reader.number<std::uint32_t>(to_string(kind));
        if (count != 0) redactions.emplace(kind, count);
    }
    return redactions;
}

Attempt read_attempt(const Reader& reader) {
    return {.target = reader.text("target"),
            .adapter = reader.text("adapter"),
            .tier = read_tier(reader),
            .endpoint = reader.text("endpoint"),
            .peer_authenticated = reader.flag("peer_authenticated"),
            .bytes_sent = reader.number<std::uint64_t>("bytes_sent"),
            .bytes_received = reader.number<std::uint64_t>("bytes_received"),
            .failed = reader.choice("failed", ErrorCode::internal),
            .failure = reader.text("failure"),
            .usage = read_usage(reader.inside("usage")),
            .cost = {reader.number<std::int64_t>("cost_nano")},
            .first_token = std::chrono::microseconds(reader.number<std::int64_t>("first_token_us")),
            .duration = std::chrono::microseconds(reader.number<std::int64_t>("duration_us")),
            .redactions = read_redactions(reader.inside("redactions")),
            .confidence = reader.find("confidence") == nullptr
                              ? std::nullopt
                              : std::optional(reader.number<double>("confidence")),
            .confidence_from = reader.choice("confidence_from", domain::ConfidenceSource::stated)
                                   .value_or(domain::ConfidenceSource::logprobs),
            .rejected = reader.flag("rejected"),
            .cause = reader.choice("cause", domain::Cause::hedge).value_or(domain::Cause::step),
            .drafted = reader.number<std::uint32_t>("drafted"),
            .accepted = reader.number<std::uint32_t>("accepted")};
}

domain::CapabilityProfile read_capability(const Reader& reader) {
    domain::CapabilityProfile needs;
    needs.prompt_tokens = reader.number<std::uint32_t>("prompt_tokens");
    needs.answer_tokens = reader.number<std::uint32_t>("answer_tokens");
    needs.tools = reader.flag("tools");
    needs.json_schema = reader.flag("json_schema");
    needs.images = reader.flag("images");
    needs.logprobs = reader.flag("logprobs");
    const auto task = domain::task_from(reader.text("task"));
    if (!task) return needs;
    needs.classified = true;
    needs.task = *task;
    needs.task_share = reader.number<float>("task_share");
    needs.difficulty = reader.number<float>("difficulty");
    needs.out_of_scope = reader.number<float>("out_of_scope");
    const Reader fields = reader.inside("fields");
    for (std::size_t i = 0; i < domain::fields_count; ++i)
        needs.fields[i] = fields.number<float>(to_string(static_cast<domain::Field>(i)));
    return needs;
}

void read_request(const Reader& reader, Trace& trace) {
    trace.id = reader.text("id");
    trace.time = WallTime(std::chrono::duration_cast<WallTime::duration>(
        std::chrono::microseconds(reader.number<std::int64_t>("time_us"))));
    trace.dialect = reader.text("dialect");
    trace.operation =
        reader.choice("operation", domain::Operation::embed).value_or(domain::Operation::chat);
    trace.stream = reader.flag("stream");
    trace.member = reader.text("member");
    trace.key_id = reader.text("key");
    trace.app = reader.text("app");
    trace.model_asked = reader.text("model_asked");
    trace.conversation = reader.text("conversation");
    trace.label = read_label(reader.inside("label"));
    reader.each("signals", [&](const json::value& value) {
        const Reader signal(value);
        trace.signals.push_back({.source = signal.text("source"),
                                 .sensitivity = signal.choice("class", domain::Sensitivity::secret)
                                                    .value_or(domain::Sensitivity::secret),
                                 .count = signal.number<std::uint32_t>("count", 1)});
    });
    trace.declassified = reader.flag("declassified");
    trace.capability = read_capability(reader.inside("needs"));
}

domain::Declassification read_declassification(const Reader& reader) {
    const auto sensitivity = [&](std::string_view key) {
        return reader.choice(key, domain::Sensitivity::secret)
            .value_or(domain::Sensitivity::secret);
    };
    return {.from = sensitivity("from"), .to = sensitivity("to"), .reason = reader.text("reason")};
}

Result<json::value> parse_stored(std::string_view text) {
    auto value = parse_json(text);
    if (value && value->is_object()) return *std::move(value);
    return fail(
        Error(ErrorCode::corrupt, "a stored row is not readable; restore molly.db from a backup")
            .italian("una riga salvata non è leggibile; ripristinare molly.db da una "
                     "copia"));
}

}  // namespace

void append_trace(std::string& out, const Trace& trace) {
    ObjectText object(out);
    append_request(object, trace);
    object.some_text("rules_hash", trace.rules_hash);
    append_decision(object.name("decision"), trace.decision);
    object.array("attempts", trace.attempts, append_attempt);
    object.some_text("target", trace.target);
    object.some_text("adapter", trace.adapter);
    object.some_text("model", trace.model);
    object.some_text("model_hash", trace.model_hash);
    append_usage(object.name("usage"), trace.usage);
    object.some_number("cost_nano", trace.cost.nano);
    object.some_number("first_token_us", trace.first_token.count());
    object.some_number("duration_us", trace.duration.count());
    object.text("outcome", to_string(trace.outcome));
    if (trace.finish) object.text("finish", to_string(*trace.finish));
    object.some_text("failure", trace.failure);
    object.some_text("caveat", trace.caveat);
    if (trace.lowered) append_declassification(object.name("lowered"), *trace.lowered);
}

std::string to_text(const Trace& trace) {
    std::string text;
    append_trace(text, trace);
    return text;
}

Result<Trace> trace_from(std::string_view text) {
    TRY(const json::value value, parse_stored(text));
    const Reader reader(value);
    Trace trace;
    read_request(reader, trace);
    trace.rules_hash = reader.text("rules_hash");
    trace.decision = read_decision(reader.inside("decision"));
    reader.each("attempts", [&](const json::value& attempt) {
        trace.attempts.push_back(read_attempt(Reader(attempt)));
    });
    trace.target = reader.text("target");
    trace.adapter = reader.text("adapter");
    trace.model = reader.text("model");
    trace.model_hash = reader.text("model_hash");
    trace.usage = read_usage(reader.inside("usage"));
    trace.cost = {reader.number<std::int64_t>("cost_nano")};
    trace.first_token = std::chrono::microseconds(reader.number<std::int64_t>("first_token_us"));
    trace.duration = std::chrono::microseconds(reader.number<std::int64_t>("duration_us"));
    trace.outcome =
        reader.choice("outcome", domain::Outcome::truncated).value_or(domain::Outcome::failed);
    trace.finish = reader.choice("finish", domain::FinishReason::content_filter);
    trace.failure = reader.text("failure");
    trace.caveat = reader.text("caveat");
    if (reader.find("lowered") != nullptr)
        trace.lowered = read_declassification(reader.inside("lowered"));
    return trace;
}

std::string to_text(const Label& label) {
    std::string text;
    append_label(text, label);
    return text;
}

Result<Label> label_from(std::string_view text) {
    TRY(const json::value value, parse_stored(text));
    return read_label(Reader(value));
}

std::string to_text(WallTime time) {
    std::string text = "0000-00-00T00:00:00.000000Z";
    const auto put = [&text](std::size_t end, std::size_t digits, std::int64_t number) {
        for (std::size_t i = 0; i < digits; ++i, number /= 10)
            text[end - 1 - i] = static_cast<char>('0' + number % 10);
    };
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::microseconds>(time - day));
    put(4, 4, static_cast<int>(date.year()));
    put(7, 2, static_cast<unsigned>(date.month()));
    put(10, 2, static_cast<unsigned>(date.day()));
    put(13, 2, clock.hours().count());
    put(16, 2, clock.minutes().count());
    put(19, 2, clock.seconds().count());
    put(26, 6, clock.subseconds().count());
    return text;
}

}  // namespace molly::store
