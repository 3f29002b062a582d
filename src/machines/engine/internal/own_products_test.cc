#include "engine/internal/own_products.h"

#include <cmath>
#include <random>
#include <vector>

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include "engine/internal/model.h"

namespace molly::engine {
namespace {

constexpr std::int64_t in = 512;
constexpr std::int64_t out = 64;
constexpr std::int64_t rows = 5;

/// Where llama.cpp puts weights of this type on this processor.
ggml_backend_buffer_type_t home_of(ggml_type type) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q6_K)
        return ggml_backend_dev_buffer_type(device);
    auto* extra =
        reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
    if (extra == nullptr) return nullptr;
    for (auto* found = extra(device); found != nullptr && *found != nullptr; ++found)
        if (std::string_view(ggml_backend_buft_name(*found)) == "CPU_REPACK") return *found;
    return nullptr;
}

class OwnProductsOf : public ::testing::TestWithParam<ggml_type> {};

// In ggml's own buffers, in a graph that ggml computes.
TEST_P(OwnProductsOf, AreWhatTheWeightsMean) {
    ASSERT_TRUE(load_backends(MOLLY_LLAMA_LIBRARIES));
    const ggml_backend_buffer_type_t home = home_of(GetParam());
    if (best_row_product().run == nullptr || home == nullptr)
        GTEST_SKIP() << "this processor has no kernel of ours";
    std::mt19937 random(13);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> numbers(static_cast<std::size_t>(in * out));
    for (float& number : numbers)
        number = normal(random);
    std::vector<float> x(static_cast<std::size_t>(in * rows));
    for (float& number : x)
        number = normal(random);
    const ggml_context_ptr weights(
        ggml_init({.mem_size = 1U << 20U, .mem_buffer = nullptr, .no_alloc = true}));
    ggml_tensor* weight = ggml_new_tensor_2d(weights.get(), GetParam(), in, out);
    const ggml_backend_buffer_ptr kept(
        ggml_backend_alloc_ctx_tensors_from_buft(weights.get(), home));
    ASSERT_TRUE(kept);
    std::vector<std::uint8_t> bytes(ggml_nbytes(weight));
    ggml_quantize_chunk(GetParam(), numbers.data(), bytes.data(), 0, out, in, nullptr);
    ggml_backend_tensor_set(weight, bytes.data(), 0, bytes.size());
    ggml_get_type_traits(GetParam())->to_float(bytes.data(), numbers.data(), in * out);
    ASSERT_TRUE(weight_layout(*weight));

    OwnProducts products({.kernel = best_row_product(), .threads = 2});
    const ggml_context_ptr context(
        ggml_init({.mem_size = 1U << 20U, .mem_buffer = nullptr, .no_alloc = true}));
    const ggml_backend_ptr backend(
        ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    ggml_tensor* input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, in, rows);
    ggml_tensor* output = products.multiply(context.get(), *weight, *input);
    ASSERT_NE(output, nullptr) << "ours differs from ggml's";
    EXPECT_EQ(products.layers(), 1U);
    const ggml_backend_buffer_ptr buffer(
        ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
    ggml_backend_tensor_set(input, x.data(), 0, x.size() * sizeof(float));
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, output);
    ASSERT_EQ(ggml_backend_graph_compute(backend.get(), graph), GGML_STATUS_SUCCESS);
    std::vector<float> y(static_cast<std::size_t>(out * rows));
    ggml_backend_tensor_get(output, y.data(), 0, y.size() * sizeof(float));
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t o = 0; o < out; ++o) {
            double sum = 0;
            for (std::int64_t i = 0; i < in; ++i)
                sum += double{x[static_cast<std::size_t>(row * in + i)]} *
                       numbers[static_cast<std::size_t>(o * in + i)];
            // The root of 512 terms of size one, each rounded to a 127th of about three.
            EXPECT_NEAR(y[static_cast<std::size_t>(row * out + o)], sum, 0.8) << row << " " << o;
        }
    }
}

TEST(OwnProducts, LeaveAloneWhatNoKernelReads) {
    ASSERT_TRUE(load_backends(MOLLY_LLAMA_LIBRARIES));
    const ggml_context_ptr context(
        ggml_init({.mem_size = 1U << 20U, .mem_buffer = nullptr, .no_alloc = false}));
    ggml_tensor* weight = ggml_new_tensor_2d(context.get(), GGML_TYPE_F16, in, out);
    ggml_tensor* input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, in, rows);
    OwnProducts products({.kernel = best_row_product(), .threads = 1});
    EXPECT_EQ(products.multiply(context.get(), *weight, *input), nullptr);
    EXPECT_EQ(products.layers(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, OwnProductsOf,
                         ::testing::Values(GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K,
                                           GGML_TYPE_Q6_K),
                         [](const auto& tested) {
                             return std::string(ggml_type_name(tested.param));
                         });

}  // namespace
}  // namespace molly::engine
