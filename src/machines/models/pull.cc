#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/coroutine.h"
#include "models/catalogue.h"
#include "models/internal/part.h"
#include "models/internal/source.h"

namespace molly::models {
namespace {

namespace fs = std::filesystem;
using internal::Part;
using internal::Place;

constexpr int redirects_max = 8;
constexpr int doublings_max = 5;

/// What a reply means for the download.
enum class Step : std::uint8_t {
    complete,  ///< every byte of the reply is written
    redirect,
    restart,  ///< the part does not fit what the server has now
};

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
    return number;
}

struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t total = 0;
};

/// `bytes 5-9/10` (RFC 9110, 14.4), whole lengths only.
std::optional<ContentRange> parse_range(std::string_view text) {
    static constexpr std::string_view unit = "bytes ";
    const std::size_t dash = text.find('-');
    const std::size_t slash = text.find('/');
    if (!text.starts_with(unit) || dash == std::string_view::npos ||
        slash == std::string_view::npos || slash < dash)
        return std::nullopt;
    const auto first = number_in(text.substr(unit.size(), dash - unit.size()));
    const auto last = number_in(text.substr(dash + 1, slash - dash - 1));
    const auto total = number_in(text.substr(slash + 1));
    if (!first || !last || !total || *first > *last || *last >= *total) return std::nullopt;
    return ContentRange{.first = *first, .last = *last, .total = *total};
}

/// A mark that names these very bytes: a strong ETag, or the date of the last change.
std::string validator_of(const net::Headers& headers) {
    const std::string_view etag = net::header(headers, "etag");
    if (!etag.empty() && !etag.starts_with("W/")) return std::string(etag);
    return etag.empty() ? std::string(net::header(headers, "last-modified")) : std::string();
}

Error too_large(std::uint64_t bytes_max) {
    return Error(ErrorCode::too_large,
                 fmt::format("the file has more than the {} bytes that are accepted", bytes_max))
        .italian(fmt::format("il file supera i {} byte accettati", bytes_max));
}

Error broken(std::string_view what) {
    return Error(ErrorCode::upstream_failed,
                 fmt::format("the server {}; run the same command again to go on", what))
        .italian("il server ha interrotto o alterato l'invio; ripetere il comando per proseguire");
}

Error status_error(int status, const std::string& host) {
    if (status == 404 || status == 410) {
        return Error(ErrorCode::not_found,
                     fmt::format("{} has no such file (status {}); check the source", host, status))
            .italian(fmt::format("{} non ha questo file (stato {}); controllare la sorgente", host,
                                 status));
    }
    if (status == 401 || status == 403) {
        return Error(ErrorCode::denied,
                     fmt::format("{} does not give this file without a login (status {}); download "
                                 "it by hand, then: molly models import FILE",
                                 host, status))
            .italian(fmt::format("{} non dà questo file senza accesso (stato {}); scaricarlo a "
                                 "mano, poi: molly models import FILE",
                                 host, status));
    }
    return Error(ErrorCode::unavailable,
                 fmt::format("{} answered with status {}; try again later", host, status))
        .italian(fmt::format("{} ha risposto con stato {}; riprovare più tardi", host, status));
}

/// Writes one reply into the part.
class PartSink final : public net::ReplySink {
public:
    PartSink(Part& part, const PullOptions& options, const Progress& progress, std::string host)
        : part_(part), options_(options), progress_(progress), host_(std::move(host)) {}

    Task<Result<void>> head(int status, const net::Headers& headers) override {
        co_return begin(status, headers);
    }
    Task<Result<void>> piece(std::string_view bytes) override {
        if (step != Step::complete)
            co_return Result<void>();  // the body of a redirect says nothing
        co_return take(bytes);
    }

    Step step = Step::complete;
    std::string location;

private:
    Result<void> begin(int status, const net::Headers& headers) {
        if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
            step = Step::redirect;
            location = std::string(net::header(headers, "location"));
            return {};
        }
        if (status == 416) {
            step = Step::restart;
            return {};
        }
        if (status != 200 && status != 206) return fail(status_error(status, host_));
        const std::string_view coding = net::header(headers, "content-encoding");
        if (!coding.empty() && coding != "identity") return fail(broken("changed the bytes"));
        TRY_DO(status == 206 ? resume(headers) : restart(headers));
        return check_room();
    }
    Result<void> resume(const net::Headers& headers) {
        const auto range = parse_range(net::header(headers, "content-range"));
        const bool fits = range && range->first == part_.done() &&
                          (part_.total() == 0 || range->total == part_.total());
        if (!fits) return fail(broken("sent another part than the one asked for"));
        part_.learn_total(range->total);
        end_ = range->last + 1;
        return {};
    }
    Result<void> restart(const net::Headers& headers) {
        const auto length = number_in(net::header(headers, "content-length"));
        end_ = length.value_or(0);
        return part_.restart(validator_of(headers), end_);
    }
    Result<void> check_room() const {
        if (part_.total() > options_.bytes_max) return fail(too_large(options_.bytes_max));
        std::error_code error;
        const fs::space_info space = fs::space(part_.path().parent_path(), error);
        const std::uint64_t missing =
            part_.total() > part_.done() ? part_.total() - part_.done() : 0;
        if (error || space.available >= missing) return {};
        return fail(
            Error(ErrorCode::exhausted,
                  fmt::format("the file needs {} bytes more and the disk of {} has {}; free "
                              "some space, then run the same command again",
                              missing, part_.path().parent_path().string(), space.available))
                .italian(fmt::format("al file servono altri {} byte e il disco di {} ne ha "
                                     "{}; liberare spazio e ripetere il comando",
                                     missing, part_.path().parent_path().string(),
                                     space.available)));
    }
    Result<void> take(std::string_view bytes) {
        if (part_.done() + bytes.size() > options_.bytes_max)
            return fail(too_large(options_.bytes_max));
        if (end_ != 0 && part_.done() + bytes.size() > end_)
            return fail(broken("sent more bytes than it had announced"));
        TRY_DO(part_.append(bytes));
        if (progress_) progress_(part_.done(), part_.total());
        return {};
    }

    Part& part_;
    const PullOptions& options_;
    const Progress& progress_;
    const std::string host_;
    std::uint64_t end_ = 0;  // where this reply ends in the file; 0: unknown
};

/// One download, from the first request to the last byte.
class Puller {
public:
    Puller(net::Connector& connector, const policy::PolicyEngine& policy,
           const PullOptions& options, const Progress& progress, Part& part)
        : connector_(connector),
          policy_(policy),
          options_(options),
          progress_(progress),
          part_(part) {}

    Task<Result<void>> run() {
        std::uint32_t attempts = 0;
        for (;;) {
            const std::uint64_t before = part_.done();
            Result<void> done = co_await attempt();
            if (done || !worth_repeating(done.error())) co_return done;
            if (part_.done() > before) attempts = 0;
            if (++attempts >= options_.attempts_max) co_return done;
            const auto doublings = std::min<std::uint32_t>(attempts - 1, doublings_max);
            co_await system_clock().sleep_until(system_clock().now() +
                                                options_.retry_wait * (1U << doublings));
        }
    }

private:
    static bool worth_repeating(const Error& error) {
        return error.code() == ErrorCode::unavailable ||
               error.code() == ErrorCode::upstream_failed ||
               error.code() == ErrorCode::deadline_exceeded;
    }

    /// Follows redirects to the file. They are followed anew each time, because a signed address
    /// expires.
    Task<Result<void>> attempt() {
        CO_TRY(Place place, internal::place_of(options_));
        for (int hop = 0; hop <= redirects_max; ++hop) {
            PartSink sink(part_, options_, progress_, place.target.endpoint.host);
            CO_TRY_DO(co_await fetch(place, sink));
            if (sink.step == Step::complete) co_return whole();
            if (sink.step == Step::restart) {
                if (part_.total() != 0 && part_.done() == part_.total()) co_return Result<void>();
                CO_TRY_DO(part_.restart({}, 0));
                continue;
            }
            CO_TRY(Place next, internal::redirected(place, sink.location, options_));
            place = std::move(next);
        }
        co_return fail(Error(ErrorCode::upstream_failed,
                             fmt::format("more than {} redirects, the last at {}; check the source",
                                         redirects_max, place.target.endpoint.host))
                           .reason("redirect_loop")
                           .italian(fmt::format("più di {} rinvii, l'ultimo presso {}; controllare "
                                                "la sorgente",
                                                redirects_max, place.target.endpoint.host)));
    }

    Task<Result<void>> fetch(const Place& place, PartSink& sink) {
        // Each hop is cleared by itself: it is another party that learns what is downloaded.
        policy::ArtifactLabel artifact;
        artifact.purpose = "models.pull";
        artifact.label.sensitivity = domain::Sensitivity::public_;
        CO_TRY(const policy::Permit permit, policy_.clear_artifact(artifact));
        CO_TRY_DO(permit.check(place.target));
        net::OutboundRequest request;
        request.method = "GET";
        request.path = place.path;
        request.cancellation = options_.cancellation;
        request.headers.emplace_back("accept", "*/*");
        request.headers.emplace_back("accept-encoding", "identity");
        request.headers.emplace_back("user-agent", "molly");
        // Without a mark of the bytes only an expected hash can tell whether the part still fits.
        const bool resumable = !part_.validator().empty() || !options_.sha256.empty();
        if (part_.done() > 0 && resumable) {
            request.headers.emplace_back("range", fmt::format("bytes={}-", part_.done()));
            if (!part_.validator().empty())
                request.headers.emplace_back("if-range", part_.validator());
        }
        net::Wire wire;
        co_return co_await connector_.exchange(permit, place.target, std::move(request), sink,
                                               wire);
    }

    Result<void> whole() const {
        if (part_.total() == 0 || part_.done() == part_.total()) return {};
        return fail(broken(fmt::format("sent {} of {} bytes", part_.done(), part_.total())));
    }

    net::Connector& connector_;
    const policy::PolicyEngine& policy_;
    const PullOptions& options_;
    const Progress& progress_;
    Part& part_;
};

/// The model, when it is here already as it is asked for. Errors: conflict, when another has its
/// name.
Result<std::optional<Model>> already_here(const Catalogue& catalogue, const PullOptions& options) {
    auto known = catalogue.find(options.name);
    std::error_code ignored;
    if (!known || !fs::exists(known->file, ignored)) return std::optional<Model>();
    const bool same =
        options.sha256.empty() ? known->source == options.source : known->hash == options.sha256;
    if (!same) return fail(internal::name_taken(options.name));
    return std::optional<Model>(*std::move(known));
}

Result<Model> take_in(Catalogue& catalogue, const PullOptions& options, Part& part) {
    TRY(std::string hash, part.finish());
    if (!options.sha256.empty() && hash != options.sha256) {
        part.discard();
        return fail(
            Error(ErrorCode::corrupt,
                  fmt::format("the file has SHA-256 {} and not the expected {}; it was "
                              "removed. Check the source and the expected hash",
                              hash, options.sha256))
                .reason("hash_mismatch")
                .italian(fmt::format("il file ha SHA-256 {} e non quello atteso {}; è stato "
                                     "rimosso. Controllare sorgente e hash atteso",
                                     hash, options.sha256)));
    }
    auto model = catalogue.adopt(part.path(), options.name, std::move(hash), options.source);
    const bool useless = !model && (model.error().code() == ErrorCode::corrupt ||
                                    model.error().code() == ErrorCode::unsupported);
    if (useless) part.discard();
    if (model) part.forget();
    return model;
}

}  // namespace

Task<Result<Model>> pull(Catalogue& catalogue, net::Connector& connector,
                         const policy::PolicyEngine& policy, PullOptions options,
                         Progress progress) {
    if (options.name.empty()) options.name = model_name_of(options.source);
    std::transform(options.sha256.begin(), options.sha256.end(), options.sha256.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    CO_TRY_DO(check_name(options.name));
    CO_TRY_DO(internal::place_of(options));
    CO_TRY_DO(catalogue.reload());
    CO_TRY(std::optional<Model> known, already_here(catalogue, options));
    if (known) co_return *std::move(known);
    CO_TRY(Part part, Part::open(catalogue.models_folder() / (options.name + ".gguf"),
                                 options.source, progress));
    const bool finished = part.total() != 0 && part.done() == part.total();
    if (!finished) {
        Puller puller(connector, policy, options, progress, part);
        CO_TRY_DO(co_await puller.run());
    }
    co_return take_in(catalogue, options, part);
}

}  // namespace molly::models
