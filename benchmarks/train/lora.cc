// One measurement of LoRA training, or one step written down for another framework to repeat.
//
//   bench_lora MODEL.gguf SECONDS   one JSON line: tokens per second, peak memory, share of the
//   peak bench_lora dump MODEL.gguf FILE   weights, batch, gradient and adapter after one step
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
#include "train/internal/lora_trainer.h"
#include "train/internal/matmul.h"
#include "train/internal/random.h"

namespace {

using namespace molly::train;

constexpr std::size_t rank = 16;
constexpr std::size_t context = 256;

OptimizerOptions options() {
    OptimizerOptions made;
    made.learning_rate = 1e-3F;
    made.steps = 1000;
    made.warm_up_steps = 1;
    made.decay = 0;
    made.beta_2 = 0.999F;
    return made;
}

/// One sequence of random tokens, every one of them learned.
PackedBatch batch_of(std::size_t vocabulary, std::size_t tokens) {
    Random random(1);
    PackedBatch out;
    out.rows = 1;
    out.context = tokens;
    for (std::size_t i = 0; i < tokens; ++i) {
        out.input.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
        out.target.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
    }
    out.weight.assign(tokens, 1.0F);
    out.first.assign(tokens, 0U);
    out.owner.assign(tokens, 0U);
    return out;
}

/// Multiplications and additions of one step for one token: forward and back through frozen weights
/// is 4 for each of them, through the adapter's 6, and attention 8 * width * context / 2 a layer.
double flop_per_token(const FrozenModel& model, const LoraLayout& layout) {
    double frozen =
        static_cast<double>(model.head().rows) * static_cast<double>(model.head().columns);
    for (const FrozenLayer& layer : model.layers())
        for (const FrozenMatrix& matrix : layer.modules)
            frozen += static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns);
    const double attention = 4.0 * static_cast<double>(model.shape().query_width()) *
                             static_cast<double>(context) *
                             static_cast<double>(model.layers().size());
    return 4 * frozen + 6 * static_cast<double>(layout.size) + attention;
}

int measure(const char* file, double seconds) {
    const auto model = FrozenModel::open(file);
    if (!model) {
        std::fputs((model.error().message() + "\n").c_str(), stderr);
        return 2;
    }
    const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
    const Precision precision = parse_precision("auto").value();
    const double peak = peak_gflops(threads, precision);
    const LoraLayout layout(*model, rank, parse_modules("all").value());
    LoraTrainer trainer(*model, layout, {rank, 2, 0}, threads, precision, 1, context);
    auto state = trainer.fresh(1);
    const PackedBatch batch = batch_of(model->shape().vocabulary, context);
    trainer.step(state, batch, options(), 0);
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    double spent = 0;
    std::size_t steps = 0;
    while (spent < seconds || steps < 2) {
        trainer.step(state, batch, options(), 0);
        ++steps;
        spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const double cpu = cpu_seconds() - cpu_start;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto tokens = static_cast<double>(steps * context);
    const double gflops = tokens / spent * flop_per_token(*model, layout) * 1e-9;
    fmt::print(
        "{{\"tokens_per_second\":{:.1f},\"tokens_per_cpu_second\":{:.1f},\"peak_bytes\":{},"
        "\"gflops\":{:.1f},"
        "\"peak_gflops\":{:.1f},\"fraction_peak\":{:.3f},\"parameters\":{},\"kernels\":\"{}\","
        "\"precision\":\"{}\"}}\n",
        tokens / spent, tokens / cpu, usage.ru_maxrss * 1024L, gflops, peak, gflops / peak,
        layout.size, kernels().name, name_of(precision));
    return 0;
}

void write(std::ofstream& file, const void* from, std::size_t bytes) {
    file.write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
}

void write_matrix(std::ofstream& file, const FrozenMatrix& matrix) {
    std::vector<float> values(matrix.rows * matrix.columns);
    matrix.read(0, matrix.rows, values.data(), matrix.columns);
    write(file, values.data(), values.size() * sizeof(float));
}

/// What benchmarks/train/check_lora.py reads: a line of JSON, then arrays in its order.
int dump(const char* path, const char* to) {
    const auto model = FrozenModel::open(path);
    if (!model) return 2;
    constexpr std::size_t tokens = 48;
    const FrozenShape& shape = model->shape();
    const LoraLayout layout(*model, rank, parse_modules("all").value());
    LoraTrainer trainer(*model, layout, {rank, 2, 0}, 2, Precision::f32, 1, tokens);
    auto state = trainer.fresh(5);
    Random random(6);
    for (float& weight : state.weights)
        weight = static_cast<float>(random.normal() * 0.02);
    const auto before = state.weights;
    const PackedBatch batch = batch_of(shape.vocabulary, tokens);
    const auto report = trainer.step(state, batch, options(), 0);
    std::ofstream file(to, std::ios::binary);
    file << fmt::format(
        "{{\"vocabulary\":{},\"embed\":{},\"layers\":{},\"heads\":{},\"key_heads\":{},\"head_"
        "width\":{},\"feed_forward\":{},"
        "\"rotate_halves\":{},\"biases\":{},\"context\":{},\"epsilon\":{:.9g},\"rank\":{},"
        "\"scale\":2,\"weights\":{},\"loss\":{:.9f},"
        "\"gradient_norm\":{:.9f},"
        "\"learning_rate\":{:.9f}}}\n",
        shape.vocabulary, shape.embed, model->layers().size(), shape.heads, shape.key_heads,
        shape.head_width, shape.feed_forward, shape.rotate_halves,
        !model->layers().front().bias[0].empty(), tokens, shape.norm_epsilon, rank, layout.size,
        report.loss, report.gradient_norm, report.rate);
    write(file, batch.input.data(), tokens * 4);
    write(file, batch.target.data(), tokens * 4);
    write_matrix(file, model->embedding());
    write_matrix(file, model->head());
    write(file, model->output_norm().data(), shape.embed * sizeof(float));
    for (const FrozenLayer& layer : model->layers()) {
        write(file, layer.frequency.data(), layer.frequency.size() * sizeof(float));
        write(file, layer.attention_norm.data(), shape.embed * sizeof(float));
        write(file, layer.feed_norm.data(), shape.embed * sizeof(float));
        for (const FrozenMatrix& matrix : layer.modules)
            write_matrix(file, matrix);
        for (std::size_t m = 0; m < 3; ++m)
            write(file, layer.bias[m].data(), layer.bias[m].size() * sizeof(float));
    }
    write(file, before.data(), before.size() * 4);
    write(file, trainer.gradient().data(), before.size() * 4);
    write(file, state.weights.data(), before.size() * 4);
    return file.good() ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count == 4 && std::string(words[1]) == "dump") return dump(words[2], words[3]);
    if (count == 3) return measure(words[1], std::strtod(words[2], nullptr));
    std::fputs("usage: bench_lora MODEL.gguf SECONDS | bench_lora dump MODEL.gguf FILE\n", stderr);
    return 2;
}
