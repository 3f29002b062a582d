#include "engine/internal/own_products.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include "base/log.h"

namespace molly::engine {
namespace {

constexpr std::uint32_t checked_rows = 3;
// Of the largest result: ggml rounds activations for Q4_K and Q6_K in blocks of 256. A wrong layout
// is off by all.
constexpr float tolerance = 0.03F;

const char* name_of(WeightLayout layout) {
    switch (layout) {
        case WeightLayout::q8_0:
            return "q8_0";
        case WeightLayout::q4_0_by_eight:
            return "q4_0_by_eight";
        case WeightLayout::q4_k_by_eight:
            return "q4_k_by_eight";
        case WeightLayout::q6_k:
            return "q6_k";
    }
    return "";
}

RowProductTask task_of(WeightLayout layout, const ggml_tensor& weight, std::uint32_t rows) {
    return {.layout = layout,
            .weights = static_cast<const std::uint8_t*>(weight.data),
            .in = static_cast<std::uint32_t>(weight.ne[0]),
            .x = nullptr,
            .x_stride = 0,
            .y = nullptr,
            .y_stride = 0,
            .rows = rows,
            .out_begin = 0,
            .out_end = static_cast<std::uint32_t>(weight.ne[1])};
}

/// Numbers of any size and sign, the same each time.
float some_number(std::size_t at) {
    return static_cast<float>((at * 2654435761U >> 7U) % 2001) / 1000 - 1;
}

/// ggml's own product of the weight with `x`; empty when it cannot be computed.
std::vector<float> product_of_ggml(const ggml_tensor& weight, const std::vector<float>& x) {
    const ggml_context_ptr context(
        ggml_init({.mem_size = 4 * ggml_tensor_overhead() + ggml_graph_overhead(),
                   .mem_buffer = nullptr,
                   .no_alloc = true}));
    const ggml_backend_ptr backend(
        ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    if (!context || !backend) return {};
    ggml_tensor* input =
        ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, weight.ne[0], checked_rows);
    // A graph may not change what it reads; ggml has no way to say so.
    ggml_tensor* output = ggml_mul_mat(context.get(), const_cast<ggml_tensor*>(&weight), input);
    const ggml_backend_buffer_ptr buffer(
        ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    if (!buffer) return {};
    ggml_backend_tensor_set(input, x.data(), 0, x.size() * sizeof(float));
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, output);
    if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) return {};
    std::vector<float> y(static_cast<std::size_t>(ggml_nelements(output)));
    ggml_backend_tensor_get(output, y.data(), 0, y.size() * sizeof(float));
    return y;
}

}  // namespace

std::optional<WeightLayout> weight_layout(const ggml_tensor& weight) {
    if (weight.buffer == nullptr || weight.data == nullptr || !ggml_is_matrix(&weight) ||
        weight.ne[0] % product_block != 0 || weight.ne[1] % product_outputs != 0)
        return std::nullopt;
    const std::string_view kept =
        ggml_backend_buft_name(ggml_backend_buffer_get_type(weight.buffer));
    if (kept == "CPU" && ggml_is_contiguous(&weight)) {
        if (weight.type == GGML_TYPE_Q8_0) return WeightLayout::q8_0;
        if (weight.type == GGML_TYPE_Q6_K) return WeightLayout::q6_k;
    }
    if (kept != "CPU_REPACK") return std::nullopt;
    if (weight.type == GGML_TYPE_Q4_0) return WeightLayout::q4_0_by_eight;
    if (weight.type == GGML_TYPE_Q4_K) return WeightLayout::q4_k_by_eight;
    return std::nullopt;
}

ggml_tensor* OwnProducts::multiply(ggml_context* context, const ggml_tensor& weight,
                                   ggml_tensor& input) {
    if (kernel_.run == nullptr || input.type != GGML_TYPE_F32 || !ggml_is_matrix(&input) ||
        input.nb[0] != sizeof(float) || input.nb[1] % sizeof(float) != 0)
        return nullptr;
    auto known = operations_.find(&weight);
    if (known == operations_.end()) {
        const auto layout = weight_layout(weight);
        if (!layout || !equals_ggml(*layout, weight)) return nullptr;
        known =
            operations_
                .emplace(&weight, Operation{.products = this, .layout = *layout, .weight = &weight})
                .first;
    }
    ggml_tensor* arguments[] = {&input};
    return ggml_custom_4d(context, GGML_TYPE_F32, weight.ne[1], input.ne[1], 1, 1, arguments, 1,
                          compute, static_cast<int>(scratch_.size()), &known->second);
}

/// Whether the layout is what we take it for, asked once of the first weight that has it.
bool OwnProducts::equals_ggml(WeightLayout layout, const ggml_tensor& weight) {
    const auto known = trusted_.find(layout);
    if (known != trusted_.end()) return known->second;
    RowProductTask task = task_of(layout, weight, checked_rows);
    std::vector<float> x(std::size_t{checked_rows} * task.in);
    for (std::size_t at = 0; at < x.size(); ++at)
        x[at] = some_number(at);
    const std::vector<float> wanted = product_of_ggml(weight, x);
    std::vector<float> ours(wanted.size());
    bool equal = !wanted.empty();
    if (equal) {
        task.x = x.data();
        task.x_stride = task.in;
        task.y = ours.data();
        task.y_stride = task.out_end;
        kernel_.run(task, scratch_.front());
        float largest = 0;
        for (const float value : wanted)
            largest = std::max(largest, std::abs(value));
        for (std::size_t at = 0; at < ours.size(); ++at)
            equal = equal && std::abs(ours[at] - wanted[at]) <= tolerance * largest;
    }
    if (!equal)
        log_event(LogLevel::warning, "products_differ",
                  {{"layout", name_of(layout)}, {"kernel", kernel_.name}});
    trusted_.emplace(layout, equal);
    return equal;
}

void OwnProducts::compute(ggml_tensor* output, int thread, int threads, void* operation) {
    const auto& asked = *static_cast<const Operation*>(operation);
    asked.products->run(asked, *output, static_cast<std::uint32_t>(thread),
                        static_cast<std::uint32_t>(threads));
}

/// Threads share the outputs.
void OwnProducts::run(const Operation& operation, ggml_tensor& output, std::uint32_t thread,
                      std::uint32_t threads) {
    const ggml_tensor& input = *output.src[0];
    RowProductTask task =
        task_of(operation.layout, *operation.weight, static_cast<std::uint32_t>(output.ne[1]));
    const std::uint32_t groups = task.out_end / product_outputs;
    task.x = static_cast<const float*>(input.data);
    task.x_stride = input.nb[1] / sizeof(float);
    task.y = static_cast<float*>(output.data);
    task.y_stride = output.nb[1] / sizeof(float);
    task.out_begin = groups * thread / threads * product_outputs;
    task.out_end = groups * (thread + 1) / threads * product_outputs;
    if (task.rows > 0 && task.out_begin < task.out_end) kernel_.run(task, scratch_[thread]);
}

}  // namespace molly::engine
