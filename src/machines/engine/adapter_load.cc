#include "engine/adapter_load.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>

#include "engine/internal/hot_set.h"

namespace molly::engine {
namespace {

constexpr std::uint64_t room_bytes = std::uint64_t{2} << 30U;

}  // namespace

Result<double> time_adapter_load(const std::filesystem::path& base,
                                 const std::filesystem::path& adapter) {
    ggml_context* read = nullptr;
    gguf_init_params params{};
    params.no_alloc = true;
    params.ctx = &read;
    const std::unique_ptr<gguf_context, decltype(&gguf_free)> file(
        gguf_init_from_file(base.c_str(), params), gguf_free);
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> tensors(read, ggml_free);
    if (file == nullptr || tensors == nullptr) {
        return fail(ErrorCode::corrupt,
                    fmt::format("{} is damaged or no GGUF model", base.string()));
    }
    std::vector<LinearLayer> layers;
    for (ggml_tensor* tensor = ggml_get_first_tensor(tensors.get()); tensor != nullptr;
         tensor = ggml_get_next_tensor(tensors.get(), tensor)) {
        if (ggml_n_dims(tensor) != 2) continue;
        layers.push_back({ggml_get_name(tensor), static_cast<std::uint64_t>(tensor->ne[0]),
                          static_cast<std::uint64_t>(tensor->ne[1]), true});
    }
    TRY(const auto hot, HotSet::make(layers, room_bytes));
    hot->prepare();
    std::array<double, 5> spent{};
    const std::vector<AdapterUse> uses = {{.id = adapter.filename().string(),
                                           .hash = adapter.string(),
                                           .file = adapter,
                                           .scale = 1,
                                           .pinned = false}};
    for (double& one : spent) {
        hot->drop(uses.front().hash);
        const auto start = std::chrono::steady_clock::now();
        TRY(const auto loaded, hot->take(uses, [] { return true; }));
        one = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                  .count();
    }
    std::sort(spent.begin(), spent.end());
    return spent[spent.size() / 2];
}

}  // namespace molly::engine
