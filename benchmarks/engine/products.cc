// One layer's product with quantized weights, by our kernel and by ggml's, in turns, on the same
// weights in ggml's own buffers.
//
//   bench_products FOLDER_OF_BACKENDS [THREADS [TYPE [KERNEL]]]
//
// Twelve layers of 2048 inputs and 8192 outputs one after the other, so that weights come from
// memory. The best of five counts.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include "engine/internal/own_products.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t in = 2048;
constexpr std::int64_t out = 8192;
constexpr int layers = 12;

template <class Function>
Function function_of(ggml_backend_dev_t device, const char* name) {
    return reinterpret_cast<Function>(
        ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name));
}

ggml_backend_buffer_type_t home_of(ggml_backend_dev_t device, ggml_type type) {
    auto extra =
        function_of<ggml_backend_dev_get_extra_bufts_t>(device, "ggml_backend_dev_get_extra_bufts");
    const bool as_in_the_file = type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q6_K;
    for (auto* found = extra(device); !as_in_the_file && *found != nullptr; ++found)
        if (std::string_view(ggml_backend_buft_name(*found)) == "CPU_REPACK") return *found;
    return ggml_backend_dev_buffer_type(device);
}

/// A graph of all layers with the same input.
struct Products {
    template <class Multiply>
    Products(ggml_backend_t backend, const std::vector<ggml_tensor*>& weights,
             const std::vector<float>& x, const Multiply& multiply)
        : context(ggml_init({.mem_size = 1U << 20U, .mem_buffer = nullptr, .no_alloc = true})),
          graph(ggml_new_graph(context.get())) {
        ggml_tensor* input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, in,
                                                static_cast<std::int64_t>(x.size()) / in);
        for (ggml_tensor* weight : weights)
            ggml_build_forward_expand(graph, multiply(context.get(), weight, input));
        buffer.reset(ggml_backend_alloc_ctx_tensors(context.get(), backend));
        ggml_backend_tensor_set(input, x.data(), 0, x.size() * sizeof(float));
    }
    double seconds(ggml_backend_t backend) const {
        const auto started = Clock::now();
        ggml_backend_graph_compute(backend, graph);
        return std::chrono::duration<double>(Clock::now() - started).count();
    }
    ggml_context_ptr context;
    ggml_cgraph* graph;
    ggml_backend_buffer_ptr buffer;
};

void compare(ggml_backend_dev_t device, ggml_type type, int threads,
             const molly::engine::RowProductChoice& kernel) {
    const ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
    function_of<ggml_backend_set_n_threads_t>(device, "ggml_backend_set_n_threads")(backend.get(),
                                                                                    threads);
    const ggml_context_ptr context(
        ggml_init({.mem_size = 1U << 20U, .mem_buffer = nullptr, .no_alloc = true}));
    std::vector<ggml_tensor*> weights(layers);
    for (ggml_tensor*& weight : weights)
        weight = ggml_new_tensor_2d(context.get(), type, in, out);
    const ggml_backend_buffer_ptr kept(
        ggml_backend_alloc_ctx_tensors_from_buft(context.get(), home_of(device, type)));
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> numbers(static_cast<std::size_t>(in * out));
    for (float& number : numbers)
        number = normal(random);
    std::vector<std::uint8_t> bytes(ggml_nbytes(weights.front()));
    ggml_quantize_chunk(type, numbers.data(), bytes.data(), 0, out, in, nullptr);
    for (ggml_tensor* weight : weights)
        ggml_backend_tensor_set(weight, bytes.data(), 0, bytes.size());
    molly::engine::OwnProducts own(
        {.kernel = kernel, .threads = static_cast<std::uint32_t>(threads)});
    for (const int rows : {1, 2, 4, 8, 16, 64, 256}) {
        const std::vector<float> x(numbers.begin(), numbers.begin() + in * rows);
        const Products theirs(backend.get(), weights, x, ggml_mul_mat);
        const Products ours(backend.get(), weights, x, [&](auto* graph, auto* weight, auto* input) {
            ggml_tensor* product = own.multiply(graph, *weight, *input);
            if (product != nullptr) return product;
            fmt::print(stderr, "there is no kernel of ours for {} here\n", ggml_type_name(type));
            std::exit(1);
        });
        double ggml = 1e9;
        double mine = 1e9;
        for (int round = 0; round < 5; ++round) {
            ggml = std::min(ggml, theirs.seconds(backend.get()));
            mine = std::min(mine, ours.seconds(backend.get()));
        }
        const double operations = 2.0 * in * out * layers * rows / 1e9;
        fmt::print("{} {:>3} rows: ggml {:4.0f} GFLOP/s, ours {:4.0f}, {:.2f} times\n",
                   ggml_type_name(type), rows, operations / ggml, operations / mine, ggml / mine);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        fmt::print(stderr, "usage: bench_products FOLDER_OF_BACKENDS [THREADS [TYPE [KERNEL]]]\n");
        return 2;
    }
    ggml_backend_load_all_from_path(words[1]);
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    molly::engine::RowProductChoice kernel = molly::engine::best_row_product();
    for (const auto& one : molly::engine::row_products())
        if (count > 4 && std::string_view(words[4]) == one.name) kernel = one;
    for (const ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_Q8_0})
        if (count < 4 || std::string_view(words[3]) == ggml_type_name(type))
            compare(device, type, count > 2 ? std::atoi(words[2]) : 2, kernel);
}
