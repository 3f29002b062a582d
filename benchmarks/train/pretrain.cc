// One measurement of pre-training, or one step written down for another framework to repeat.
//
//   bench_train PRESET SECONDS   one JSON line: tokens per second, peak memory, share of the peak
//   bench_train dump FILE        weights, batch, gradient and weights after one step
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "measure.h"
#include "train/internal/kernels.h"
#include "train/internal/lanes.h"
#include "train/internal/matmul.h"
#include "train/internal/optimizer.h"
#include "train/internal/random.h"

namespace {

using molly::train::Batch;
using molly::train::OptimizerOptions;
using molly::train::Precision;
using molly::train::Random;
using molly::train::Shape;
using molly::train::Trainer;

struct Arrays {
    std::vector<std::int32_t> input, target;
    std::vector<float> weight;
    std::vector<std::uint32_t> first;

    Arrays(const Shape& shape, std::size_t sequences) {
        Random random(1);
        for (std::size_t i = 0; i < sequences * shape.context; ++i) {
            input.push_back(static_cast<std::int32_t>(random.below(shape.vocabulary)));
            target.push_back(static_cast<std::int32_t>(random.below(shape.vocabulary)));
        }
        weight.assign(input.size(), 1.0F);
        first.assign(input.size(), 0U);
    }
    Batch view(const Shape& shape, std::size_t sequences) const {
        Batch batch;
        batch.sequences = sequences;
        batch.tokens = shape.context;
        batch.input = input;
        batch.target = target;
        batch.weight = weight;
        batch.first = first;
        return batch;
    }
};

OptimizerOptions options() {
    OptimizerOptions made;
    made.learning_rate = 1e-3F;
    made.steps = 1000;
    made.warm_up_steps = 1;
    return made;
}

int measure(const std::string& name, double seconds) {
    const auto preset = molly::train::find_preset(name);
    if (!preset) {
        std::fputs((preset.error().message() + "\n").c_str(), stderr);
        return 2;
    }
    const Shape& shape = preset->shape;
    const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
    const Precision precision = molly::train::parse_precision("auto").value();
    const double peak = peak_gflops(threads, precision);
    Trainer trainer(shape, threads, 2, precision);
    auto state = trainer.fresh(1);
    const Arrays arrays(shape, preset->batch);
    trainer.step(state, arrays.view(shape, preset->batch), options());
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    double spent = 0;
    std::size_t steps = 0;
    while (spent < seconds || steps < 2) {
        trainer.step(state, arrays.view(shape, preset->batch), options());
        ++steps;
        spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const double cpu = cpu_seconds() - cpu_start;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto tokens = static_cast<double>(steps * preset->batch * shape.context);
    const double rate = tokens / spent;
    const double gflops = rate * shape.flop_per_token() * 1e-9;
    fmt::print(
        "{{\"tokens_per_second\":{:.1f},\"tokens_per_cpu_second\":{:.1f},\"peak_bytes\":{},"
        "\"gflops\":{:.1f},"
        "\"peak_gflops\":{:.1f},\"fraction_peak\":{:.3f},\"parameters\":{},"
        "\"kernels\":\"{}\",\"precision\":\"{}\"}}\n",
        rate, tokens / cpu, usage.ru_maxrss * 1024L, gflops, peak, gflops / peak,
        shape.parameters(), molly::train::kernels().name, molly::train::name_of(precision));
    return 0;
}

void write(std::ofstream& file, const void* from, std::size_t bytes) {
    file.write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
}

int dump(const char* path) {
    Shape shape = molly::train::find_preset("tiny")->shape;
    shape.context = 48;
    constexpr std::size_t sequences = 4;
    Trainer trainer(shape, 2, 1);
    auto state = trainer.fresh(5);
    const Arrays arrays(shape, sequences);
    const auto before = state.weights;
    OptimizerOptions plain = options();
    plain.decay = 0.1F;
    const auto report = trainer.step(state, arrays.view(shape, sequences), plain);
    std::ofstream file(path, std::ios::binary);
    file << fmt::format(
        "{{\"vocabulary\":{},\"embed\":{},\"layers\":{},\"heads\":{},"
        "\"key_heads\":{},\"feed_forward\":{},\"context\":{},\"sequences\":{},"
        "\"weights\":{},\"loss\":{:.9f},\"gradient_norm\":{:.9f},"
        "\"learning_rate\":{:.9f}}}\n",
        shape.vocabulary, shape.embed, shape.layers, shape.heads, shape.key_heads,
        shape.feed_forward, shape.context, sequences, before.size(), report.loss,
        report.gradient_norm, report.rate);
    write(file, arrays.input.data(), arrays.input.size() * 4);
    write(file, arrays.target.data(), arrays.target.size() * 4);
    write(file, before.data(), before.size() * 4);
    write(file, trainer.gradient().data(), before.size() * 4);
    write(file, state.weights.data(), before.size() * 4);
    return file.good() ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count == 3 && std::string(words[1]) == "dump") return dump(words[2]);
    if (count == 3) return measure(words[1], std::strtod(words[2], nullptr));
    std::fputs("usage: bench_train PRESET SECONDS | bench_train dump FILE\n", stderr);
    return 2;
}
