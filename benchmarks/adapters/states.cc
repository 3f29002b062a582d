// What it costs to bring adapters into memory, and how often that is needed.
//
//   bench_adapters FOLDER      (base.gguf and adapter-NN.gguf, as make_models writes them)
//
// Timed is what a request waits for: making room, reading, packing. Cold: the file's pages were
// dropped from the system's cache before. Warm: they were read just before. The hit rates are of a
// simulated load, 1,000 adapters asked for by Zipf's law with room for 16, so that the policies see
// the same requests.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <unistd.h>

#include "adapters/registry.h"
#include "engine/internal/hot_set.h"
#include "engine/internal/reuse.h"

namespace {

namespace fs = std::filesystem;
using Milliseconds = std::chrono::duration<double, std::milli>;

double timed(const std::function<void()>& work) {
    const auto started = std::chrono::steady_clock::now();
    work();
    return Milliseconds(std::chrono::steady_clock::now() - started).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

std::vector<molly::engine::LinearLayer> layers_of(const fs::path& base) {
    std::vector<molly::engine::LinearLayer> layers;
    ggml_context* tensors = nullptr;
    gguf_context* file = gguf_init_from_file(base.c_str(), {.no_alloc = true, .ctx = &tensors});
    for (ggml_tensor* tensor = ggml_get_first_tensor(tensors); tensor != nullptr;
         tensor = ggml_get_next_tensor(tensors, tensor)) {
        if (ggml_n_dims(tensor) != 2) continue;
        layers.push_back({ggml_get_name(tensor), static_cast<std::uint64_t>(tensor->ne[0]),
                          static_cast<std::uint64_t>(tensor->ne[1]), true});
    }
    gguf_free(file);
    ggml_free(tensors);
    return layers;
}

void drop_cache(const fs::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY);
    ::fsync(descriptor);
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
}

struct Loads {
    double cold_ms = 0;
    double warm_ms = 0;
    double fresh_ms = 0;  // warm, into memory that nobody had before
    double read_ms = 0;   // the file's bytes alone, from the system's cache
    std::size_t bytes = 0;
};

std::vector<molly::engine::AdapterUse> use_of(const fs::path& folder, int number) {
    molly::engine::AdapterUse use;
    use.id = fmt::format("adapter-{:02}", number);
    use.hash = use.id;
    use.file = folder / (use.id + ".gguf");
    return {use};
}

/// What a request waits for: take evicts, loads and holds.
void take(molly::engine::HotSet& hot, const std::vector<molly::engine::AdapterUse>& uses) {
    const auto held = hot.take(uses, [] { return true; });
    if (held) return;
    fmt::print(stderr, "{}\n", held.error().message());
    std::exit(1);
}

std::shared_ptr<molly::engine::HotSet> hot_set(
    const fs::path& base, std::uint64_t bytes,
    molly::engine::AdapterNumbers numbers = molly::engine::AdapterNumbers::f16) {
    auto hot = molly::engine::HotSet::make(layers_of(base), bytes, nullptr, numbers);
    if (!hot) std::exit(1);
    return *std::move(hot);
}

double read_only(const fs::path& file) {
    std::vector<char> buffer(1U << 18U);
    return timed([&] {
        const int descriptor = ::open(file.c_str(), O_RDONLY);
        while (::read(descriptor, buffer.data(), buffer.size()) > 0) {
        }
        ::close(descriptor);
    });
}

struct Small {
    double warm_ms = 0;
    std::size_t bytes = 0;
};

/// Adapters kept as bytes, each in the place of another one.
Small measure_small(const fs::path& folder, std::size_t bytes) {
    const auto hot = hot_set(folder / "base.gguf", bytes, molly::engine::AdapterNumbers::int8);
    hot->prepare();
    std::vector<double> warm;
    for (int i = 0; i < 16; ++i) {
        const auto uses = use_of(folder, i % 8);
        read_only(uses.front().file);
        warm.push_back(timed([&] { take(*hot, uses); }));
    }
    return {.warm_ms = median(warm), .bytes = hot->state().bytes / hot->state().hot};
}

/// Room for three, so that from the fourth on each takes the place of another one.
Loads measure_loads(const fs::path& folder) {
    constexpr int files = 8;
    constexpr int rounds = 4;
    Loads loads;
    loads.bytes = fs::file_size(use_of(folder, 0).front().file);
    const auto hot = hot_set(folder / "base.gguf", loads.bytes * 7 / 2);
    hot->prepare();
    std::vector<double> cold;
    std::vector<double> warm;
    std::vector<double> fresh;
    std::vector<double> read;
    for (int i = 0; i < files * rounds; ++i) {
        const auto uses = use_of(folder, i % files);
        read_only(uses.front().file);
        warm.push_back(timed([&] { take(*hot, uses); }));
        read.push_back(read_only(uses.front().file));
    }
    loads.bytes = hot->state().bytes / hot->state().hot;
    for (int i = 0; i < files; ++i) {
        const auto uses = use_of(folder, i);
        drop_cache(uses.front().file);
        cold.push_back(timed([&] { take(*hot, uses); }));
        const auto empty = hot_set(folder / "base.gguf", loads.bytes * 2);
        fresh.push_back(timed([&] { take(*empty, uses); }));
    }
    loads.cold_ms = median(cold);
    loads.warm_ms = median(warm);
    loads.fresh_ms = median(fresh);
    loads.read_ms = median(read);
    return loads;
}

constexpr std::size_t adapters = 1000;
constexpr std::size_t room = 16;

std::vector<std::size_t> zipf_load(std::size_t requests, double exponent) {
    std::vector<double> weights;
    for (std::size_t i = 0; i < adapters; ++i)
        weights.push_back(1 / std::pow(static_cast<double>(i + 1), exponent));
    std::mt19937 random(5);
    std::discrete_distribution<std::size_t> draw(weights.begin(), weights.end());
    std::vector<std::size_t> load;
    for (std::size_t i = 0; i < requests; ++i)
        load.push_back(draw(random));
    return load;
}

/// The share of requests that found their adapter; `worth` of a resident at a moment, the least
/// goes.
double hit_rate(const std::vector<std::size_t>& load,
                const std::function<void(std::size_t, std::size_t)>& asked,
                const std::function<double(std::size_t, std::size_t)>& worth) {
    std::set<std::size_t> resident;
    std::size_t hits = 0;
    for (std::size_t at = 0; at < load.size(); ++at) {
        asked(load[at], at);
        if (resident.contains(load[at])) {
            ++hits;
            continue;
        }
        if (resident.size() == room) {
            resident.erase(*std::ranges::min_element(resident, [&](std::size_t a, std::size_t b) {
                return worth(a, at) < worth(b, at);
            }));
        }
        resident.insert(load[at]);
    }
    return static_cast<double>(hits) / static_cast<double>(load.size());
}

double rate_of_ours(const std::vector<std::size_t>& load) {
    molly::engine::Reuse reuse;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < adapters; ++i)
        names.push_back(std::to_string(i));
    return hit_rate(
        load, [&](std::size_t id, std::size_t) { reuse.asked(names[id]); },
        [&](std::size_t id, std::size_t) { return reuse.worth(names[id], 10, 1 << 24); });
}

double rate_of_lru(const std::vector<std::size_t>& load) {
    std::vector<double> last(adapters);
    return hit_rate(
        load, [&](std::size_t id, std::size_t at) { last[id] = static_cast<double>(at); },
        [&](std::size_t id, std::size_t) { return last[id]; });
}

/// Counts since the adapter came into memory, as caches that keep nothing else do.
double rate_of_lfu(const std::vector<std::size_t>& load) {
    std::set<std::size_t> resident;
    std::vector<double> count(adapters);
    std::size_t hits = 0;
    for (const std::size_t id : load) {
        if (resident.contains(id)) {
            ++hits;
            ++count[id];
            continue;
        }
        if (resident.size() == room)
            resident.erase(*std::ranges::min_element(
                resident, [&](std::size_t a, std::size_t b) { return count[a] < count[b]; }));
        resident.insert(id);
        count[id] = 1;
    }
    return static_cast<double>(hits) / static_cast<double>(load.size());
}

/// Whoever is asked for again last goes (Belady, 1966).
double rate_of_optimal(const std::vector<std::size_t>& load) {
    std::vector<std::vector<std::size_t>> uses(adapters);
    for (std::size_t at = 0; at < load.size(); ++at)
        uses[load[at]].push_back(at);
    return hit_rate(
        load, [](std::size_t, std::size_t) {},
        [&](std::size_t id, std::size_t at) {
            const auto next = std::ranges::upper_bound(uses[id], at);
            return next == uses[id].end() ? -1e18 : -static_cast<double>(*next);
        });
}

/// Opening a registry of ten thousand adapters and finding one of them.
double measure_start() {
    const fs::path folder = fs::temp_directory_path() / fmt::format("molly-bench-{}", ::getpid());
    molly::adapters::Manifest manifest;
    manifest.version = "1.0.0";
    manifest.base.hash = std::string(64, 'a');
    manifest.hash = std::string(64, 'b');
    for (int i = 0; i < 10'000; ++i) {
        manifest.name = fmt::format("a{}", i);
        const fs::path shelf = folder / "adapters/names" / manifest.name;
        fs::create_directories(shelf);
        std::ofstream(shelf / "1.0.0.json") << to_text(manifest);
        std::ofstream(shelf / "history") << "1.0.0\n";
    }
    const double took = timed([&] {
        const auto registry = molly::adapters::Registry::open(folder);
        if (!registry || !(*registry)->find("a4711", manifest.base.hash)) std::exit(1);
    });
    fs::remove_all(folder);
    return took;
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        fmt::print(stderr, "usage: bench_adapters FOLDER\n");
        return 2;
    }
    const Loads loads = measure_loads(words[1]);
    fmt::print(
        "rank 16 on the 0.5B shape, {:.1f} MiB in kernel layout: cold to hot {:.1f} ms, warm to "
        "hot {:.1f} ms; {:.1f} ms into memory that nobody had before, {:.1f} ms for reading "
        "alone\n",
        static_cast<double>(loads.bytes) / 1048576, loads.cold_ms, loads.warm_ms, loads.fresh_ms,
        loads.read_ms);
    const Small small = measure_small(words[1], loads.bytes * 7 / 2);
    fmt::print("kept as bytes: {:.1f} MiB, warm to hot {:.1f} ms\n",
               static_cast<double>(small.bytes) / 1048576, small.warm_ms);
    const double start_ms = measure_start();
    fmt::print("open a registry of 10,000 and find one: {:.2f} ms\n", start_ms);
    const auto load = zipf_load(100'000, 1.0);
    const double ours = rate_of_ours(load);
    const double lru = rate_of_lru(load);
    const double lfu = rate_of_lfu(load);
    const double optimal = rate_of_optimal(load);
    fmt::print(
        "hits, 1,000 adapters by Zipf's law (exponent 1), room for 16: ours {:.3f}, LRU {:.3f}, "
        "LFU {:.3f}, optimal {:.3f}\n",
        ours, lru, lfu, optimal);
    fmt::print(
        "{{\"cold_to_hot_ms\":{:.2f},\"warm_to_hot_ms\":{:.2f},\"fresh_to_hot_ms\":{:.2f},"
        "\"warm_to_hot_int8_ms\":{:.2f},\"int8_share\":{:.3f},"
        "\"hit_rate\":{:.4f},\"hit_rate_"
        "lru\":{:.4f},"
        "\"hit_rate_lfu\":{:.4f},\"hit_rate_optimal\":{:.4f},\"start_10000_ms\":{:.2f}}}\n",
        loads.cold_ms, loads.warm_ms, loads.fresh_ms, small.warm_ms,
        static_cast<double>(small.bytes) / static_cast<double>(loads.bytes), ours, lru, lfu,
        optimal, start_ms);
    return 0;
}
