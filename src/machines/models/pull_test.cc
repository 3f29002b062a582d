#include <atomic>
#include <charconv>
#include <fstream>
#include <mutex>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/coroutine.h"
#include "models/catalogue.h"
#include "models/internal/source.h"
#include "models/internal/test_folder.h"
#include "net/server.h"

namespace molly::models {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::test_model;
using testing::TestFolder;

std::size_t first_of(std::string_view range) {
    std::size_t first = 0;
    range.remove_prefix(std::string_view("bytes=").size());
    std::from_chars(range.data(), range.data() + range.size(), first);
    return first;
}

/// A server of one file that misbehaves as it is told.
struct Site {
    std::string body = bytes_of(test_model());
    std::string etag = "\"v1\"";
    std::atomic<int> cuts = 0;  // how many replies break off half-way
    std::atomic<bool> ignores_ranges = false;
    std::atomic<bool> shifts_ranges = false;
    std::atomic<int> status = 0;          // instead of the file
    std::atomic<std::uint64_t> seen = 0;  // bytes that arrived
    std::mutex mutex;
    std::vector<std::string> ranges;  // of the requests for the file
    std::vector<std::string> paths;

    /// A connection that breaks off takes along what its reader has not read yet.
    Task<void> wait_until_seen(std::uint64_t bytes, const Cancellation& gone) {
        for (int i = 0; i < 2000 && seen < bytes && !gone.cancelled(); ++i) {
            const auto later = system_clock().now() + std::chrono::milliseconds(5);
            co_await system_clock().sleep_until(later);
        }
    }

    Task<void> serve_file(net::HttpRequest& request, net::Responder& responder) {
        const std::string range(net::header(request.headers, "range"));
        {
            const std::scoped_lock lock(mutex);
            ranges.push_back(range);
        }
        net::HttpReply reply;
        reply.headers.emplace_back("etag", etag);
        const bool fits = net::header(request.headers, "if-range") == etag;
        std::size_t first = range.empty() || !fits || ignores_ranges ? 0 : first_of(range);
        if (first > 0) {
            reply.status = 206;
            const std::size_t said = first + (shifts_ranges ? 1 : 0);
            reply.headers.emplace_back("content-range", "bytes " + std::to_string(said) + "-" +
                                                            std::to_string(body.size() - 1) + "/" +
                                                            std::to_string(body.size()));
        }
        reply.body = body.substr(first);
        if (cuts-- > 0) {
            (void)co_await responder.begin(reply.status, reply.headers);
            const std::string half = reply.body.substr(0, reply.body.size() / 2);
            (void)co_await responder.write(half);
            co_await wait_until_seen(first + half.size(), *responder.cancellation());
            co_return;  // the end is never said
        }
        (void)co_await responder.reply(std::move(reply));
    }

    Task<void> serve(net::HttpRequest& request, net::Responder& responder) {
        {
            const std::scoped_lock lock(mutex);
            paths.push_back(request.path);
        }
        net::HttpReply reply;
        if (status != 0) {
            reply.status = status;
            (void)co_await responder.reply(std::move(reply));
            co_return;
        }
        std::string to;
        if (request.path == "/loop") to = "/loop";
        if (request.path == "/plain") to = "http://models.example/tiny.gguf";
        if (request.path == "/nowhere") to = "gopher://models.example/";
        if (request.path == "/moved") to = "again?x=1";
        if (request.path == "/again") to = "/files/tiny.gguf";
        if (to.empty()) {
            co_await serve_file(request, responder);
            co_return;
        }
        reply.status = 302;
        reply.headers.emplace_back("location", to);
        reply.body = "moved";
        (void)co_await responder.reply(std::move(reply));
    }
};

class PullTest : public ::testing::Test {
protected:
    PullTest() {
        server_ = net::Server::listen(
                      server_options(), threads_,
                      [this](net::HttpRequest& request, net::Responder& responder) -> Task<void> {
                          return site_.serve(request, responder);
                      })
                      .value();
        options_.source = url("/files/tiny.gguf");
        options_.retry_wait = std::chrono::milliseconds(1);
        options_.hub = url("");
    }
    static net::ServerOptions server_options() {
        net::ServerOptions options;
        options.port = 0;
        return options;
    }
    std::string url(const std::string& path) const {
        return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
    }
    Result<Model> pull() {
        Catalogue catalogue = Catalogue::open(folder_.path()).value();
        Result<Model> model = fail(ErrorCode::internal, "not run");
        const Progress progress = [this](std::uint64_t done, std::uint64_t total) {
            done_ = done;
            total_ = total;
            site_.seen = done;
        };
        threads_.run([&]() -> Task<void> {
            model = co_await models::pull(catalogue, *connector_, policy_, options_, progress);
        });
        return model;
    }
    fs::path part() const { return folder_.path() / "models" / "tiny.gguf.part"; }
    std::vector<std::string> left_behind() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_.path() / "models")) {
            const std::string name = entry.path().filename().string();
            if (name.find(".part") != std::string::npos) names.push_back(name);
        }
        return names;
    }

    TestFolder folder_;
    Site site_;
    net::IoThreads threads_{1};
    std::unique_ptr<net::Connector> connector_ = net::make_connector();
    policy::PolicyEngine policy_{policy::Options()};
    std::unique_ptr<net::Server> server_;
    PullOptions options_;
    std::uint64_t done_ = 0;
    std::uint64_t total_ = 0;
};

TEST_F(PullTest, AFileArrivesWholeWithProgress) {
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(model->name, "tiny");
    EXPECT_EQ(model->hash, seal::to_hex(seal::sha256(site_.body)));
    EXPECT_EQ(model->source, options_.source);
    EXPECT_EQ(bytes_of(model->file), site_.body);
    EXPECT_EQ(done_, site_.body.size());
    EXPECT_EQ(total_, site_.body.size());
    EXPECT_TRUE(left_behind().empty());
    ASSERT_TRUE(pull().has_value());
    EXPECT_EQ(site_.ranges.size(), 1U) << "what is here already is not downloaded again";
}

TEST_F(PullTest, CutConnectionsAreResumed) {
    site_.cuts = 3;
    options_.sha256 = seal::to_hex(seal::sha256(site_.body));
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(bytes_of(model->file), site_.body);
    ASSERT_EQ(site_.ranges.size(), 4U);
    EXPECT_EQ(site_.ranges[0], "");
    EXPECT_EQ(site_.ranges[1], "bytes=" + std::to_string(site_.body.size() / 2) + "-");
}

TEST_F(PullTest, ALaterPullGoesOnWhereAnEarlierOneGaveUp) {
    site_.cuts = 1;
    options_.attempts_max = 1;
    const auto cut = pull();
    ASSERT_FALSE(cut.has_value());
    EXPECT_EQ(cut.error().code(), ErrorCode::upstream_failed);
    const auto kept = fs::file_size(part());
    EXPECT_EQ(kept, site_.body.size() / 2);
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(bytes_of(model->file), site_.body);
    EXPECT_EQ(site_.ranges.back(), "bytes=" + std::to_string(kept) + "-");
}

TEST_F(PullTest, AChangedFileIsTakenFromItsBeginning) {
    site_.cuts = 1;
    options_.attempts_max = 1;
    ASSERT_FALSE(pull().has_value());
    site_.etag = "\"v2\"";
    site_.body.back() = static_cast<char>(site_.body.back() ^ 1);
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(bytes_of(model->file), site_.body);
}

TEST_F(PullTest, AServerWithoutRangesBeginsAgain) {
    site_.cuts = 1;
    site_.ignores_ranges = true;
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(bytes_of(model->file), site_.body);
}

TEST_F(PullTest, AnotherRangeThanTheOneAskedForIsRefused) {
    site_.cuts = 1;
    site_.shifts_ranges = true;
    options_.attempts_max = 2;
    EXPECT_EQ(pull().error().code(), ErrorCode::upstream_failed);
}

TEST_F(PullTest, AWrongHashIsNotKept) {
    options_.sha256 = std::string(64, '0');
    const auto model = pull();
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().code(), ErrorCode::corrupt);
    EXPECT_EQ(model.error().reason(), "hash_mismatch");
    EXPECT_TRUE(left_behind().empty());
    EXPECT_TRUE(Catalogue::open(folder_.path())->list().empty());
}

TEST_F(PullTest, WhatIsNoModelIsNotKept) {
    site_.body = "<html>please log in</html>";
    EXPECT_EQ(pull().error().code(), ErrorCode::corrupt);
    EXPECT_TRUE(left_behind().empty());
}

TEST_F(PullTest, RedirectsAreFollowedRelativeOnesToo) {
    options_.source = url("/moved");
    options_.name = "tiny";
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(site_.paths, (std::vector<std::string>{"/moved", "/again", "/files/tiny.gguf"}));
}

TEST_F(PullTest, ARedirectLoopEnds) {
    options_.source = url("/loop");
    options_.attempts_max = 1;
    const auto model = pull();
    EXPECT_EQ(model.error().code(), ErrorCode::upstream_failed);
    EXPECT_EQ(model.error().reason(), "redirect_loop");
    EXPECT_EQ(site_.paths.size(), 9U);
}

TEST_F(PullTest, ARedirectToPlainHttpIsDenied) {
    options_.source = url("/plain");
    const auto model = pull();
    EXPECT_EQ(model.error().code(), ErrorCode::denied);
    EXPECT_EQ(model.error().reason(), "tls_required");
    EXPECT_EQ(site_.paths.size(), 1U) << "a denial is not tried again";
    options_.source = url("/nowhere");
    options_.attempts_max = 1;
    EXPECT_EQ(pull().error().code(), ErrorCode::upstream_failed);
}

TEST_F(PullTest, TooManyBytesAreRefused) {
    options_.bytes_max = site_.body.size() - 1;
    EXPECT_EQ(pull().error().code(), ErrorCode::too_large);
    site_.cuts = 1;  // a streamed reply names no length
    options_.bytes_max = site_.body.size() / 4;
    EXPECT_EQ(pull().error().code(), ErrorCode::too_large);
}

TEST_F(PullTest, AStatusSaysWhatToDo) {
    options_.attempts_max = 2;
    site_.status = 404;
    EXPECT_EQ(pull().error().code(), ErrorCode::not_found);
    site_.status = 401;
    EXPECT_EQ(pull().error().code(), ErrorCode::denied);
    EXPECT_EQ(site_.paths.size(), 2U);
    site_.status = 503;
    EXPECT_EQ(pull().error().code(), ErrorCode::unavailable);
    EXPECT_EQ(site_.paths.size(), 4U);
}

TEST_F(PullTest, ATakenNameIsAConflict) {
    ASSERT_TRUE(pull().has_value());
    site_.body.back() = static_cast<char>(site_.body.back() ^ 1);
    options_.source = url("/other/tiny.gguf");
    EXPECT_EQ(pull().error().code(), ErrorCode::conflict);
    options_.name = "other";
    EXPECT_TRUE(pull().has_value());
}

TEST_F(PullTest, AHubSourceNamesItsFile) {
    options_.source = "hf:owner/repo/sub dir/tiny.gguf";
    const auto model = pull();
    ASSERT_TRUE(model.has_value()) << model.error().message();
    EXPECT_EQ(site_.paths.at(0), "/owner/repo/resolve/main/sub dir/tiny.gguf");
}

TEST(Source, OnlyHttpsAndTheHubAreSources) {
    const auto place = [](const char* source) {
        PullOptions options;
        options.source = source;
        return internal::place_of(options);
    };
    EXPECT_EQ(place("hf:a/b/c.gguf")->url, "https://huggingface.co/a/b/resolve/main/c.gguf");
    EXPECT_EQ(place("hf:a/b/c.gguf")->target.tier, domain::Tier::t3);
    EXPECT_EQ(place("https://h.example:8443/c.gguf?x=1")->path, "/c.gguf?x=1");
    EXPECT_EQ(place("https://h.example:8443/c.gguf")->target.endpoint.port, 8443);
    EXPECT_EQ(place("https://h.example/c.gguf")->target.endpoint.port, 443);
    EXPECT_EQ(place("http://h.example/c.gguf").error().code(), ErrorCode::denied);
    for (const char* source : {"", "c.gguf", "hf:a", "hf:a/b", "hf:a/b/", "hf:/b/c", "ftp://h/c",
                               "https://user:secret@h.example/c.gguf", "https:///c.gguf"}) {
        const auto refused = place(source);
        ASSERT_FALSE(refused.has_value()) << source;
        EXPECT_EQ(refused.error().code(), ErrorCode::invalid_request) << source;
        EXPECT_EQ(refused.error().message().find("secret"), std::string::npos);
    }
}

TEST(Source, AStrangerMayNotSendUsToOurselves) {
    PullOptions options;
    options.source = "https://h.example/a.gguf";
    const auto from = internal::place_of(options);
    ASSERT_TRUE(from.has_value());
    const auto to = [&](const char* location) {
        return internal::redirected(*from, location, options);
    };
    EXPECT_EQ(to("https://127.0.0.1/x").error().reason(), "redirect_to_loopback");
    EXPECT_EQ(to("http://localhost:8080/x").error().reason(), "redirect_to_loopback");
    EXPECT_EQ(to("http://h.example/x").error().reason(), "tls_required");
    EXPECT_EQ(to("//cdn.example/x")->url, "https://cdn.example/x");
    EXPECT_EQ(to("b.gguf")->url, "https://h.example/b.gguf");
    EXPECT_EQ(to("").value().url, "https://h.example/a.gguf");
}

}  // namespace
}  // namespace molly::models
