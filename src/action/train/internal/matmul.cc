#include "train/internal/matmul.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <vector>

#include <dnnl.hpp>
#include <fmt/format.h>

#include "base/assert.h"
#include "train/internal/kernels.h"

// Declared here because <omp.h> belongs to one compiler; oneDNN brings the library.
extern "C" void omp_set_num_threads(int count);

namespace molly::train {
namespace {

dnnl_dim_t dim(std::size_t count) {
    return static_cast<dnnl_dim_t>(count);
}

bool multiplies_bf16() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16") != 0;
#else
    return false;
#endif
}

}  // namespace

Result<Precision> parse_precision(const std::string& name) {
    if (name == "f32") return Precision::f32;
    if (name == "bf16") return Precision::bf16;
    if (name == "auto") return multiplies_bf16() ? Precision::bf16 : Precision::f32;
    return fail(
        Error(ErrorCode::invalid_request, fmt::format("{}: precisions are auto, f32, bf16", name))
            .italian(fmt::format("{}: le precisioni sono auto, f32, bf16", name))
            .param("precision"));
}

const char* name_of(Precision precision) noexcept {
    return precision == Precision::bf16 ? "bf16" : "f32";
}

struct Matmul::Rounded {
    /// rows, columns, inner, a transposed, b transposed, strides of a, b and c, accumulate
    using Key = std::array<std::size_t, 9>;

    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    std::map<Key, dnnl::matmul> kernels;
    std::vector<std::uint16_t> a, b;

    /// A factor in bf16; its rows lie `stride` apart.
    struct Half {
        const std::uint16_t* at;
        std::size_t stride;
    };

    static Half round(std::size_t rows, std::size_t columns, In from,
                      std::vector<std::uint16_t>& to) {
        if (from.rounded != nullptr) return {from.rounded, from.stride};
        // Rows a power of two apart would share cache sets when they are read by columns.
        const std::size_t stride = columns % 256 == 0 ? columns + 32 : columns;
        to.resize(std::max(to.size(), rows * stride));
        for (std::size_t r = 0; r < rows; ++r)
            molly::train::kernels().to_bf16(columns, from.at + r * from.stride,
                                            to.data() + r * stride);
        return {to.data(), stride};
    }

    static dnnl::memory::desc describe(std::size_t rows, std::size_t columns, bool transposed,
                                       std::size_t stride, dnnl::memory::data_type type) {
        const dnnl::memory::dims strides =
            transposed ? dnnl::memory::dims{1, dim(stride)} : dnnl::memory::dims{dim(stride), 1};
        return {{dim(rows), dim(columns)}, type, strides};
    }

    void multiply(std::size_t rows, std::size_t columns, std::size_t inner, In first, In second,
                  Out c, bool accumulate) {
        using Type = dnnl::memory::data_type;
        const Half half_a =
            first.transposed ? round(inner, rows, first, a) : round(rows, inner, first, a);
        const Half half_b =
            second.transposed ? round(columns, inner, second, b) : round(inner, columns, second, b);
        const auto of_a = describe(rows, inner, first.transposed, half_a.stride, Type::bf16);
        const auto of_b = describe(inner, columns, second.transposed, half_b.stride, Type::bf16);
        const auto of_c = describe(rows, columns, false, c.stride, Type::f32);
        const Key key = {rows,
                         columns,
                         inner,
                         first.transposed ? 1U : 0U,
                         second.transposed ? 1U : 0U,
                         half_a.stride,
                         half_b.stride,
                         c.stride,
                         accumulate ? 1U : 0U};
        auto found = kernels.find(key);
        if (found == kernels.end()) {
            dnnl::primitive_attr attributes;
            if (accumulate) {
                dnnl::post_ops sum;
                sum.append_sum(1.0F);
                attributes.set_post_ops(sum);
            }
            const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(of_a, of_b, of_c),
                                                    attributes, engine);
            found = kernels.emplace(key, dnnl::matmul(made)).first;
        }
        found->second.execute(
            stream, {{DNNL_ARG_SRC, {of_a, engine, const_cast<std::uint16_t*>(half_a.at)}},
                     {DNNL_ARG_WEIGHTS, {of_b, engine, const_cast<std::uint16_t*>(half_b.at)}},
                     {DNNL_ARG_DST, {of_c, engine, c.at}}});
    }
};

Matmul::Matmul(Precision precision) {
    if (precision == Precision::bf16) rounded_ = std::make_unique<Rounded>();
}

Matmul::~Matmul() = default;

void Matmul::operator()(std::size_t rows, std::size_t columns, std::size_t inner, In a, In b, Out c,
                        bool accumulate) {
    if (rounded_ != nullptr) return rounded_->multiply(rows, columns, inner, a, b, c, accumulate);
    const dnnl_status_t status =
        dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', dim(rows), dim(columns),
                   dim(inner), 1.0F, a.at, dim(a.stride), b.at, dim(b.stride),
                   accumulate ? 1.0F : 0.0F, c.at, dim(c.stride));
    MOLLY_ASSERT(status == dnnl_success);
}

void keep_matmul_to_this_thread() {
    omp_set_num_threads(1);
}

double measure_matmul_peak(Precision precision) {
    constexpr std::size_t side = 512;
    const std::vector<float> a(side * side, 0.5F);
    const std::vector<float> b(side * side, 0.25F);
    std::vector<float> c(side * side);
    Matmul multiply(precision);
    double best = 0;
    for (int i = 0; i < 40; ++i) {
        const auto start = std::chrono::steady_clock::now();
        multiply(side, side, side, {a.data(), side}, {b.data(), side}, {c.data(), side});
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        best = std::max(best, 2.0 * side * side * side / spent.count() * 1e-9);
    }
    return best;
}

}  // namespace molly::train
