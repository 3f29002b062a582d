#include "limits.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

namespace molly::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The layout in which llama.cpp keeps Q4_0 weights on this processor; the plain one where there
/// is no other.
ggml_backend_buffer_type_t weight_layout(ggml_backend_dev_t device) {
    using Extra = ggml_backend_buffer_type_t* (*)(ggml_backend_dev_t);
    auto* registry = ggml_backend_dev_backend_reg(device);
    auto extra = reinterpret_cast<Extra>(
        ggml_backend_reg_get_proc_address(registry, "ggml_backend_dev_get_extra_bufts"));
    if (extra != nullptr) {
        for (auto* type = extra(device); type != nullptr && *type != nullptr; ++type)
            if (std::strcmp(ggml_backend_buft_name(*type), "CPU_REPACK") == 0) return *type;
    }
    return ggml_backend_dev_buffer_type(device);
}

void set_threads(ggml_backend_t backend, ggml_backend_dev_t device, std::uint32_t threads) {
    using Set = void (*)(ggml_backend_t, int);
    auto set = reinterpret_cast<Set>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads"));
    if (set != nullptr) set(backend, static_cast<int>(threads));
}

}  // namespace

double memory_bandwidth(std::uint32_t threads) {
    constexpr std::size_t words = std::size_t{64} << 20U;  // 512 MiB each: no cache holds it
    constexpr int passes = 5;
    std::vector<std::vector<std::uint64_t>> memory(threads);
    for (auto& part : memory)
        part.assign(words / threads, 1);
    double best = 0;
    for (int pass = 0; pass < passes; ++pass) {
        std::vector<std::uint64_t> sums(threads);
        std::vector<std::thread> workers;
        const auto start = Clock::now();
        for (std::uint32_t i = 0; i < threads; ++i)
            workers.emplace_back([&, i] {
                sums[i] = std::accumulate(memory[i].begin(), memory[i].end(), std::uint64_t{0});
            });
        for (auto& worker : workers)
            worker.join();
        const double took = seconds_since(start);
        if (std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) == 0) std::exit(1);
        best = std::max(best, static_cast<double>(words) * 8 / took);
    }
    return best;
}

double matmul_speed(std::uint32_t threads, std::int64_t rows) {
    constexpr std::int64_t size = 4096;
    constexpr int passes = 7;
    auto* device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_t backend = ggml_backend_dev_init(device, nullptr);
    set_threads(backend, device, threads);
    const ggml_init_params params{.mem_size = 16U << 20U, .mem_buffer = nullptr, .no_alloc = true};
    ggml_context* weights = ggml_init(params);
    ggml_tensor* weight = ggml_new_tensor_2d(weights, GGML_TYPE_Q4_0, size, size);
    auto* weight_memory = ggml_backend_alloc_ctx_tensors_from_buft(weights, weight_layout(device));
    const std::vector<std::uint8_t> zeros(ggml_nbytes(weight));
    ggml_backend_tensor_set(weight, zeros.data(), 0, zeros.size());
    ggml_context* work = ggml_init(params);
    ggml_tensor* input = ggml_new_tensor_2d(work, GGML_TYPE_F32, size, rows);
    ggml_tensor* product = ggml_mul_mat(work, weight, input);
    ggml_cgraph* graph = ggml_new_graph(work);
    ggml_build_forward_expand(graph, product);
    auto* memory = ggml_backend_alloc_ctx_tensors(work, backend);
    const std::vector<float> ones(static_cast<std::size_t>(size * rows), 1.0F);
    ggml_backend_tensor_set(input, ones.data(), 0, ones.size() * sizeof(float));
    double best = 0;
    for (int pass = 0; pass < passes; ++pass) {
        constexpr int repeats = 20;
        const auto start = Clock::now();
        for (int i = 0; i < repeats; ++i)
            ggml_backend_graph_compute(backend, graph);
        const double operations = 2.0 * size * size * static_cast<double>(rows) * repeats;
        best = std::max(best, operations / seconds_since(start));
    }
    ggml_backend_buffer_free(memory);
    ggml_backend_buffer_free(weight_memory);
    ggml_free(work);
    ggml_free(weights);
    ggml_backend_free(backend);
    return best;
}

}  // namespace molly::bench
