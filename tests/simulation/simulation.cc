#include "simulation.h"

#include <algorithm>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "caller.h"
#include "gateway/gateway.h"
#include "oracle.h"
#include "seal/seal.h"
#include "store/trace_text.h"
#include "world/network.h"
#include "world/store.h"

namespace molly::simulation {
namespace {

using domain::Outcome;
using domain::Trace;
using std::chrono::milliseconds;
using world::Behaviour;

/// One request on its way.
struct Course {
    const Ask* ask = nullptr;
    Bound bound;
    std::unique_ptr<CallerEnd> end;
    bool asked = false;
    bool over = false;
};

/// One word, and every placeholder that the request has.
std::string echo(const net::OutboundRequest& request) {
    std::string words = "hello";
    const std::string& body = request.body;
    for (const char* kind : {"[IBAN_", "[EMAIL_", "[DECLARED_"}) {
        for (auto at = body.find(kind); at != std::string::npos; at = body.find(kind, at + 1))
            words += " " + body.substr(at, body.find(']', at) + 1 - at);
    }
    return words;
}

std::string lower(std::string text) {
    for (char& c : text)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// Forgets what was found.
class BlindAnnotator final : public annotate::Annotator {
public:
    explicit BlindAnnotator(std::unique_ptr<annotate::Annotator> next) : next_(std::move(next)) {}
    Result<domain::AnnotatedRequest> annotate(
        domain::Request request, const std::optional<domain::Label>& sticky) const override {
        auto annotated = next_->annotate(std::move(request), sticky);
        if (annotated) annotated->findings.assign(annotated->findings.size(), {});
        return annotated;
    }

private:
    std::unique_ptr<annotate::Annotator> next_;
};

class World {
public:
    World(std::uint64_t seed, const Planted& planted);

    Findings run();

private:
    void declare(const Planted& planted);
    void build();
    void start(Course& course);
    Task<void> live(Course& course);
    Task<void> leave(Course& course);
    void check_moment();
    void check_course(const Course& course);
    void check_trace(const Course& course, const Trace& trace);
    void check_egress(const world::Seen& seen, std::size_t before);
    void check_departures(const Trace& trace);
    void check_rooms();
    void check_records();
    void check_restored(const Course& course, const Trace& trace);
    void check_silence(const std::string& where, const std::string& text,
                       const std::function<bool(const Course&)>& there);
    void count(const Trace& trace);
    const Trace* trace_of(const Course& course) const;
    const Place& place_of(const std::string& id) const;
    Bound bound_now(const Ask& ask) const;
    Behaviour behave(const std::string& target);
    double any_share();
    void violated(std::string what) { findings_.violations.push_back(std::move(what)); }

    Random random_;
    Setup setup_;
    Findings findings_;
    boost::asio::io_context io_{1};
    world::SimulatedClock clock_;
    world::MemoryStore store_{clock_};
    world::Network network_{clock_};
    world::Engine engine_{clock_};
    Metrics metrics_;
    std::unique_ptr<annotate::Annotator> annotator_;
    std::unique_ptr<policy::PolicyEngine> policy_;
    std::unique_ptr<router::Health> health_;
    std::unique_ptr<members::Members> members_;
    std::vector<std::unique_ptr<targets::Target>> targets_;
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    net::Handler handler_;
    std::vector<Course> courses_;
    std::size_t egress_checked_ = 0;
    bool blind_ = false;
};

World::World(std::uint64_t seed, const Planted& planted)
    : random_(seed), setup_(make_setup(random_)) {
    declare(planted);
    build();
}

/// Plants what is to be found, and gives the outside world its chance.
void World::declare(const Planted& planted) {
    if (planted.wrong_tier) {
        for (Place& place : setup_.places) {
            if (place.spec.tier == domain::Tier::t1) place.truth = domain::Tier::t3;
        }
    }
    store_.forgets_departures = planted.forgets_departures;
    store_.forgets_traces = planted.loses_traces;
    blind_ = planted.blind;
    const auto pause = [this] { return Duration(milliseconds(random_.below(40))); };
    store_.delay = [this] { return Duration(milliseconds(random_.below(5))); };
    store_.refuses = [this] { return random_.chance(setup_.store_refuses_percent); };
    network_.delay = pause;
    network_.departures_count = [this] { return store_.departures.size(); };
    network_.says = [this](const std::string& /*target*/, const net::OutboundRequest& request) {
        const bool verifies = request.body.find("The number:") != std::string::npos;
        return verifies ? fmt::format("{}", random_.below(100)) : echo(request);
    };
    network_.sureness = [this](const std::string& /*target*/) { return any_share(); };
    engine_.sureness = [this] { return any_share(); };
    network_.behaviour = [this](const std::string& target) { return behave(target); };
    engine_.delay = pause;
    engine_.behaviour = [this](const std::string&) { return behave("t0"); };
}

void World::build() {
    for (const Place& place : setup_.places) {
        auto spec = std::make_shared<const domain::TargetSpec>(place.spec);
        targets_.push_back(spec->local
                               ? targets::make_local_target(spec, engine_)
                               : targets::make_remote_target(spec, network_, "sk-upstream"));
    }
    for (const KeyOfWorld& key : setup_.keys) {
        store::KeyRow row;
        row.id = fmt::format("key{}", store_.key_rows.size());
        row.hash = seal::to_hex(seal::sha256(key.text));
        row.body = members::to_text(key.scope);
        store_.key_rows.push_back(std::move(row));
    }
    annotator_ = *annotate::Annotator::make(setup_.labels);
    if (blind_) annotator_ = std::make_unique<BlindAnnotator>(std::move(annotator_));
    policy_ = std::make_unique<policy::PolicyEngine>(setup_.policy);
    health_ = std::make_unique<router::Health>(setup_.routing, clock_);
    members_ = *members::Members::open(store_, clock_);
    std::vector<targets::Target*> all;
    for (const auto& target : targets_)
        all.push_back(target.get());
    pipeline::Parts parts{*annotator_,    *policy_,       store_,   *members_, *health_,
                          setup_.routing, std::move(all), metrics_, clock_,    "simulation"};
    pipeline_ = std::make_unique<pipeline::Pipeline>(std::move(parts), pipeline::Options{});
    gateway::Parts face{*pipeline_,     *policy_, *members_, store_,
                        setup_.routing, metrics_, clock_,    nullptr};
    handler_ = gateway::make_handler(face, gateway::Options{});
}

const Place& World::place_of(const std::string& id) const {
    return *std::find_if(setup_.places.begin(), setup_.places.end(),
                         [&](const Place& place) { return place.spec.id == id; });
}

/// A probability.
double World::any_share() {
    return static_cast<double>(random_.below(1001)) / 1000;
}

Behaviour World::behave(const std::string& target) {
    if (!random_.chance(place_of(target).faults_percent)) return Behaviour::answers;
    return static_cast<Behaviour>(1 + random_.below(static_cast<std::size_t>(Behaviour::garbles)));
}

const Trace* World::trace_of(const Course& course) const {
    const Trace* found = nullptr;
    for (const Trace& trace : store_.committed) {
        if (trace.app == course.ask->name) found = &trace;
    }
    return found;
}

/// The bound of a request that begins now: what its conversation has committed so far sticks.
Bound World::bound_now(const Ask& ask) const {
    Bound label = label_of(setup_, ask);
    for (const Course& other : courses_) {
        const bool same =
            !ask.conversation.empty() && other.ask->conversation == ask.conversation &&
            setup_.keys[other.ask->key].scope.member == setup_.keys[ask.key].scope.member;
        // A refused declaration labels nothing.
        const bool counts = same && !other.bound.must_refuse && trace_of(other) != nullptr;
        if (counts) label = join_labels(label, label_of(setup_, *other.ask));
    }
    return permit_of(setup_, ask, std::move(label));
}

Task<void> World::live(Course& course) {
    const Ask& ask = *course.ask;
    co_await clock_.sleep(ask.start);
    course.bound = bound_now(ask);
    course.asked = true;
    net::HttpRequest request;
    request.method = "POST";
    request.path = ask.path;
    request.headers = {{"host", "127.0.0.1:8080"},
                       {"content-type", "application/json"},
                       {"user-agent", ask.name},
                       {"authorization", "Bearer " + setup_.keys[ask.key].text}};
    request.body = ask.body;
    request.peer = "127.0.0.1";
    request.received = clock_.now();
    co_await handler_(request, *course.end);
    course.over = true;
}

Task<void> World::leave(Course& course) {
    co_await clock_.sleep(course.ask->start + *course.ask->leaves_after);
    course.end->leave();
}

void World::start(Course& course) {
    course.end = std::make_unique<CallerEnd>(
        clock_, [this] { return Duration(milliseconds(random_.below(10))); });
    course.end->before_last_byte = [this, &course] {
        const bool promised = course.end->status == 200;
        if (promised && trace_of(course) == nullptr &&
            course.end->body.find("error") == std::string::npos)
            violated(course.ask->name + ": the last byte went before the trace was committed");
    };
    spawn(io_.get_executor(), [this, &course] { return live(course); });
    if (course.ask->leaves_after)
        spawn(io_.get_executor(), [this, &course] { return leave(course); });
}

Findings World::run() {
    courses_.resize(setup_.asks.size());
    for (std::size_t i = 0; i < courses_.size(); ++i)
        courses_[i].ask = &setup_.asks[i];
    for (Course& course : courses_)
        start(course);
    constexpr int steps_max = 100'000;
    int steps = 0;
    do {
        io_.restart();
        io_.poll();
        check_moment();
    } while (clock_.advance() && ++steps < steps_max);
    if (steps >= steps_max) violated("the world does not come to rest");
    for (const Course& course : courses_)
        check_course(course);
    check_rooms();
    check_records();
    return std::move(findings_);
}

/// Whatever left so far left with a departure that a crash at this moment would keep.
void World::check_moment() {
    for (; egress_checked_ < network_.seen.size(); ++egress_checked_)
        check_egress(network_.seen[egress_checked_], egress_checked_);
}

void World::check_egress(const world::Seen& seen, std::size_t before) {
    const Place& place = place_of(seen.target);
    ++findings_.tally["egress " + std::string(to_string(place.truth))];
    for (const Course& course : courses_) {
        if (seen.bytes.find(course.ask->canary) == std::string::npos) continue;
        if (!may_be_at(course.bound, place)) {
            violated(fmt::format("{}: its canary is at {} ({})", course.ask->name, seen.target,
                                 to_string(place.truth)));
        }
    }
    if (place.truth == domain::Tier::t3) {
        check_silence("the third party " + seen.target, seen.bytes, [&](const Course& course) {
            return seen.bytes.find(course.ask->canary) != std::string::npos;
        });
    }
    std::size_t departed = 0;
    for (std::size_t i = 0; i < seen.departures_then; ++i)
        departed += store_.departures[i].target == seen.target ? 1U : 0U;
    std::size_t went = 1;
    for (std::size_t i = 0; i < before; ++i)
        went += network_.seen[i].target == seen.target ? 1U : 0U;
    if (departed < went)
        violated("bytes went to " + seen.target + " without a committed departure");
}

void World::check_course(const Course& course) {
    const CallerEnd& end = *course.end;
    const std::string& name = course.ask->name;
    const bool left = end.cancellation()->cancelled();
    if (!course.over) violated(name + ": it never came to an end");
    if (end.disorder) violated(name + ": its answer came out of order");
    if (end.answers != 1 && !left) violated(name + ": it got not one answer");
    if (!end.ended && !left) violated(name + ": its answer has no end");
    std::size_t traces = 0;
    for (const Trace& trace : store_.committed)
        traces += trace.app == name ? 1U : 0U;
    const bool store_sound = setup_.store_refuses_percent == 0;
    if (traces > 1 || (traces == 0 && store_sound)) violated(name + ": it left not one trace");
    if (const Trace* trace = trace_of(course)) check_trace(course, *trace);
}

void World::check_trace(const Course& course, const Trace& trace) {
    const std::string& name = course.ask->name;
    const members::Scope& scope = setup_.keys[course.ask->key].scope;
    count(trace);
    check_departures(trace);
    check_restored(course, trace);
    std::size_t steps = 0;
    std::set<std::string> tried;
    for (const domain::Attempt& attempt : trace.attempts) {
        // More samples of a place, and who says what an answer is worth, are no steps of the plan.
        const bool step =
            attempt.cause != domain::Cause::sample && attempt.cause != domain::Cause::verification;
        steps += step ? 1U : 0U;
        if (step && !tried.insert(attempt.target).second)
            violated(name + ": a target was tried twice");
        if (!may_be_at(course.bound, place_of(attempt.target)))
            violated(name + ": it was tried at " + attempt.target + ", outside its permit");
        const bool covered = scope.models.empty() || scope.models.front() == attempt.target;
        if (!covered) violated(name + ": its key does not cover " + attempt.target);
    }
    if (steps > setup_.routing.attempts_max) violated(name + ": too many attempts");
    if (course.bound.must_refuse && trace.outcome != Outcome::refused &&
        trace.outcome != Outcome::cancelled) {
        violated(name + ": it declared what its key may not, and was not refused");
    }
    if (trace.outcome == Outcome::refused && !trace.attempts.empty())
        violated(name + ": refused, and tried all the same");
    const bool whole = course.end->ended && course.end->status == 200;
    if (trace.outcome == Outcome::answered && trace.usage.prompt_tokens == 0)
        violated(name + ": answered without usage");
    if (whole && !course.ask->stream && trace.outcome != Outcome::answered)
        violated(name + ": a good answer, and the trace says otherwise");
    const bool says_done = course.end->body.find("\"finish_reason\":\"stop\"") != std::string::npos;
    if (trace.outcome == Outcome::truncated && says_done)
        violated(name + ": broken off, and it looks finished");
    // Every model of these worlds says one word.
    const std::size_t said = course.end->body.find("hello");
    if (said != std::string::npos && course.end->body.find("hello", said + 1) != std::string::npos)
        violated(name + ": a second answer was appended to the first");
    if (course.end->body.find("sk-upstream") != std::string::npos)
        violated(name + ": it was told the upstream's key");
}

/// No such text may hold what is in a request and must not leave: of the requests that are `there`
/// phrases too, which others may say freely.
void World::check_silence(const std::string& where, const std::string& text,
                          const std::function<bool(const Course&)>& there) {
    const std::string heard = lower(text);
    for (const Course& course : courses_) {
        for (const std::string& word : unspeakable(setup_, *course.ask)) {
            if (word.starts_with("phrase") && !there(course)) continue;
            if (heard.find(word) != std::string::npos)
                violated(course.ask->name + ": an identifier of it is in " + where);
        }
    }
}

/// Metrics, traces and errors tell of no content.
void World::check_records() {
    std::string records = metrics_.render();
    for (const Trace& trace : store_.committed)
        records += store::to_text(trace);
    for (const store::Departure& departure : store_.departures)
        records += departure.target + departure.endpoint + departure.rule;
    for (const Course& course : courses_) {
        if (course.end->status != 200) records += course.end->body;
    }
    check_silence("a record or an error", records, [](const Course&) { return true; });
    if (records.find("canary") != std::string::npos)
        violated("a canary is in a record or an error");
}

/// Who asked reads values, where the third party read placeholders.
void World::check_restored(const Course& course, const Trace& trace) {
    if (trace.attempts.empty() || trace.attempts.back().redactions.empty()) return;
    ++findings_.tally["redacted"];
    const std::string& body = course.end->body;
    if (!course.end->ended || course.end->status != 200) return;
    for (const char* kind : {"[IBAN_", "[EMAIL_", "[DECLARED_"}) {
        if (body.find(kind) != std::string::npos)
            violated(course.ask->name + ": a placeholder reached the caller");
    }
    if (course.ask->path != "/v1/embeddings") ++findings_.tally["restored"];
}

void World::check_departures(const Trace& trace) {
    for (const domain::Attempt& attempt : trace.attempts) {
        if (attempt.bytes_sent == 0) continue;
        const bool recorded = std::any_of(store_.departures.begin(), store_.departures.end(),
                                          [&](const store::Departure& departure) {
                                              return departure.trace_id == trace.id &&
                                                     departure.target == attempt.target;
                                          });
        if (!recorded) violated(trace.app + ": bytes left for " + attempt.target + " unrecorded");
    }
}

/// When all is over, the whole room of each key is free again.
void World::check_rooms() {
    for (const members::Key& key : members_->list()) {
        if (!key.scope.parallel_max) continue;
        std::vector<std::unique_ptr<members::Reservation>> taken;
        for (std::uint32_t i = 0; i < *key.scope.parallel_max; ++i) {
            auto room = members_->reserve(key, 0, {});
            if (!room) {
                violated("a key did not get its room back");
                break;
            }
            taken.push_back(*std::move(room));
        }
        if (members_->reserve(key, 0, {})) violated("a key has more room than it may");
    }
}

void World::count(const Trace& trace) {
    ++findings_.tally["traces"];
    ++findings_.tally[std::string(to_string(trace.outcome))];
    if (trace.attempts.size() > 1) ++findings_.tally["fallbacks"];
    for (const domain::Attempt& attempt : trace.attempts)
        ++findings_.tally[fmt::format("cause {}", to_string(attempt.cause))];
    for (const domain::Signal& signal : trace.signals) {
        if (signal.source == "conversation") ++findings_.tally["sticky"];
        if (signal.source.starts_with("rule:")) ++findings_.tally["rules"];
    }
}

}  // namespace

void Findings::add(const Findings& other) {
    violations.insert(violations.end(), other.violations.begin(), other.violations.end());
    for (const auto& [name, value] : other.tally)
        tally[name] += value;
}

Findings simulate(std::uint64_t seed, const Planted& planted) {
    return World(seed, planted).run();
}

}  // namespace molly::simulation
