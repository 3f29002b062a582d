#include "engine/internal/hot_adapter.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <llama.h>
#include <sys/mman.h>

namespace molly::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix_a = ".lora_a";
constexpr std::string_view suffix_b = ".lora_b";

struct GgufDeleter {
    void operator()(gguf_context* file) const noexcept { gguf_free(file); }
};
struct TensorsDeleter {
    void operator()(ggml_context* tensors) const noexcept { ggml_free(tensors); }
};

std::unexpected<Error> misfit(ErrorCode code, std::string_view tensor, std::string_view what) {
    return fail(Error(code, fmt::format("adapter tensor {}: {}", tensor, what))
                    .reason("adapter_mismatch")
                    .italian(fmt::format("tensore {} dell'adattatore: {}", tensor, what)));
}

/// The two factors of one layer as the file has them.
struct Factors {
    std::uint32_t layer = 0;
    const ggml_tensor* a = nullptr;
    const ggml_tensor* b = nullptr;

    std::uint32_t rank() const { return static_cast<std::uint32_t>(a->ne[1]); }
};

/// An adapter file with its tensors named, not read.
struct Opened {
    std::unique_ptr<gguf_context, GgufDeleter> file;
    std::unique_ptr<ggml_context, TensorsDeleter> tensors;
    std::vector<Factors> factors;  // by layer
    float alpha = 0;
};

bool readable(const ggml_tensor& tensor) {
    return tensor.type == GGML_TYPE_F32 || tensor.type == GGML_TYPE_F16 ||
           tensor.type == GGML_TYPE_BF16;
}

Result<void> check(const Factors& factors, const LinearLayer& layer) {
    if (factors.a == nullptr || factors.b == nullptr)
        return misfit(ErrorCode::corrupt, layer.name, "one of its two factors is missing");
    for (const ggml_tensor* factor : {factors.a, factors.b})
        if (ggml_n_dims(factor) > 2 || !readable(*factor))
            return misfit(ErrorCode::unsupported, ggml_get_name(factor),
                          "only f32, f16 and bf16 matrices are read");
    const auto in = static_cast<std::uint64_t>(factors.a->ne[0]);
    const auto out = static_cast<std::uint64_t>(factors.b->ne[1]);
    if (in != layer.in || out != layer.out || factors.a->ne[1] != factors.b->ne[0]) {
        return misfit(
            ErrorCode::conflict, layer.name,
            fmt::format("{} x {} and {} x {} do not fit a layer from {} to {}", factors.a->ne[0],
                        factors.a->ne[1], factors.b->ne[0], factors.b->ne[1], layer.in, layer.out));
    }
    if (!layer.usable || !lora_fits(in, out, factors.rank())) {
        return misfit(ErrorCode::unsupported, layer.name,
                      fmt::format("this engine cannot adapt a layer from {} to {} with rank {}", in,
                                  out, factors.rank()));
    }
    return {};
}

Result<void> sort_factors(Opened& opened, std::span<const LinearLayer> layers) {
    std::map<std::string_view, std::uint32_t> by_name;
    for (std::uint32_t i = 0; i < layers.size(); ++i)
        by_name.emplace(layers[i].name, i);
    std::map<std::uint32_t, Factors> found;
    for (const ggml_tensor* tensor = ggml_get_first_tensor(opened.tensors.get()); tensor != nullptr;
         tensor = ggml_get_next_tensor(opened.tensors.get(), const_cast<ggml_tensor*>(tensor))) {
        const std::string_view name = ggml_get_name(tensor);
        const bool is_a = name.ends_with(suffix_a);
        const auto layer =
            by_name.find(name.substr(0, name.size() - std::min(name.size(), suffix_a.size())));
        if ((!is_a && !name.ends_with(suffix_b)) || layer == by_name.end()) {
            return misfit(ErrorCode::conflict, name,
                          "no linear layer of the base has this name; it was made for another one");
        }
        Factors& factors = found[layer->second];
        factors.layer = layer->second;
        (is_a ? factors.a : factors.b) = tensor;
    }
    for (const auto& [layer, factors] : found) {
        TRY_DO(check(factors, layers[layer]));
        opened.factors.push_back(factors);
    }
    if (opened.factors.empty()) return fail(ErrorCode::corrupt, "the adapter has no tensors");
    return {};
}

Error gone() {
    return Error(ErrorCode::not_found, "the adapter's file is gone; it was removed")
        .reason("adapter_not_found")
        .italian("il file dell'adattatore non c'è più: è stato tolto");
}

Result<Opened> open(const fs::path& file, std::span<const LinearLayer> layers) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return fail(gone());
    Opened opened;
    ggml_context* tensors = nullptr;
    opened.file.reset(gguf_init_from_file(file.c_str(), {.no_alloc = true, .ctx = &tensors}));
    opened.tensors.reset(tensors);
    if (!opened.file || !opened.tensors) {
        return fail(ErrorCode::corrupt, fmt::format("{} is no sound GGUF file; import the adapter "
                                                    "again",
                                                    file.string()));
    }
    const auto key = gguf_find_key(opened.file.get(), "adapter.lora.alpha");
    if (key >= 0 && gguf_get_kv_type(opened.file.get(), key) == GGUF_TYPE_FLOAT32)
        opened.alpha = gguf_get_val_f32(opened.file.get(), key);
    TRY_DO(sort_factors(opened, layers));
    return opened;
}

/// Where a number starts that a vector may be loaded from at once.
constexpr std::size_t aligned(std::size_t halves) {
    constexpr std::size_t line = 32;
    return (halves + line - 1) / line * line;
}

std::size_t halves_of(const Factors& factors, const LinearLayer& layer) {
    return aligned(lora_numbers(static_cast<std::uint32_t>(layer.in),
                                static_cast<std::uint32_t>(layer.out),
                                lora_padded_rank(factors.rank())));
}

/// Reads one factor as half precision; `scratch` keeps its memory between calls.
class FactorReader {
public:
    FactorReader(const fs::path& file, const gguf_context* gguf)
        : stream_(file, std::ios::binary), gguf_(gguf) {}

    Result<const std::uint16_t*> read(const ggml_tensor& tensor) {
        const std::size_t bytes = ggml_nbytes(&tensor);
        const auto count = static_cast<std::size_t>(ggml_nelements(&tensor));
        raw_.resize(bytes);
        const auto id = gguf_find_tensor(gguf_, ggml_get_name(&tensor));
        stream_.seekg(static_cast<std::streamoff>(gguf_get_data_offset(gguf_) +
                                                  gguf_get_tensor_offset(gguf_, id)));
        stream_.read(raw_.data(), static_cast<std::streamsize>(bytes));
        if (!stream_) {
            return misfit(ErrorCode::corrupt, ggml_get_name(&tensor), "the file ends inside it");
        }
        if (tensor.type == GGML_TYPE_F16) return reinterpret_cast<std::uint16_t*>(raw_.data());
        const auto* numbers = reinterpret_cast<const float*>(raw_.data());
        if (tensor.type == GGML_TYPE_BF16) {
            wide_.resize(count);
            ggml_bf16_to_fp32_row(reinterpret_cast<const ggml_bf16_t*>(raw_.data()), wide_.data(),
                                  static_cast<std::int64_t>(count));
            numbers = wide_.data();
        }
        halves_.resize(count);
        ggml_fp32_to_fp16_row(numbers, halves_.data(), static_cast<std::int64_t>(count));
        return halves_.data();
    }

private:
    std::ifstream stream_;
    const gguf_context* gguf_;
    std::vector<char> raw_;
    std::vector<float> wide_;
    std::vector<std::uint16_t> halves_;
};

}  // namespace

Result<Pages> Pages::take(std::size_t bytes) {
    constexpr std::size_t huge_page = 2U << 20U;
    void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return fail(ErrorCode::exhausted,
                    fmt::format("no {} MiB of memory for an adapter; close something or pin fewer "
                                "adapters",
                                bytes >> 20U));
    }
    if (bytes >= huge_page) madvise(start, bytes, MADV_HUGEPAGE);
    Pages pages;
    pages.start_ = start;
    pages.bytes_ = bytes;
    return pages;
}

Pages::Pages(Pages&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
Pages& Pages::operator=(Pages&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
}
Pages::~Pages() {
    if (start_ != nullptr) munmap(start_, bytes_);
}

Result<std::size_t> hot_bytes_of(const fs::path& file, std::span<const LinearLayer> layers) {
    TRY(const Opened opened, open(file, layers));
    std::size_t halves = 0;
    for (const Factors& factors : opened.factors)
        halves += halves_of(factors, layers[factors.layer]);
    return halves * sizeof(std::uint16_t);
}

Result<std::shared_ptr<const HotAdapter>> HotAdapter::load(const fs::path& file,
                                                           std::span<const LinearLayer> layers) {
    TRY(const Opened opened, open(file, layers));
    std::size_t halves = 0;
    for (const Factors& factors : opened.factors)
        halves += halves_of(factors, layers[factors.layer]);
    std::shared_ptr<HotAdapter> adapter(new HotAdapter);
    TRY(adapter->pages_, Pages::take(halves * sizeof(std::uint16_t)));
    adapter->pairs_.resize(layers.size());
    FactorReader reader(file, opened.file.get());
    std::uint16_t* at = adapter->pages_.halves();
    for (const Factors& factors : opened.factors) {
        const LinearLayer& layer = layers[factors.layer];
        const std::uint32_t rank = factors.rank();
        LoraPair& pair = adapter->pairs_[factors.layer];
        pair.in = static_cast<std::uint32_t>(layer.in);
        pair.out = static_cast<std::uint32_t>(layer.out);
        pair.rank = lora_padded_rank(rank);
        pair.scale = opened.alpha != 0 ? opened.alpha / static_cast<float>(rank) : 1;
        pair.a = at;
        pair.b = at + std::size_t{pair.rank} * pair.in;
        TRY(const auto* a, reader.read(*factors.a));
        pack_lora_a(a, pair.in, rank, at);
        TRY(const auto* b, reader.read(*factors.b));
        pack_lora_b(b, pair.out, rank, at + std::size_t{pair.rank} * pair.in);
        at += halves_of(factors, layer);
    }
    adapter->matched_ = opened.factors.size();
    return std::shared_ptr<const HotAdapter>(std::move(adapter));
}

Result<std::shared_ptr<const HotAdapter>> HotAdapter::load_whole(const fs::path& file,
                                                                 WholeModel& model) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return fail(gone());
    std::shared_ptr<HotAdapter> adapter(new HotAdapter);
    const std::scoped_lock lock(model.mutex);
    llama_adapter_lora* loaded = llama_adapter_lora_init(model.model, file.c_str());
    if (loaded == nullptr) {
        return fail(Error(ErrorCode::conflict,
                          "llama.cpp cannot apply this adapter to this base: it is damaged, or was "
                          "made for another base; import it again")
                        .reason("adapter_mismatch")
                        .italian("llama.cpp non può applicare questo adattatore a questa base: è "
                                 "danneggiato o per un'altra; importarlo di nuovo"));
    }
    adapter->whole_.reset(loaded, [&model](llama_adapter_lora* whole) {
        const std::scoped_lock freeing(model.mutex);
        llama_adapter_lora_free(whole);
    });
    return std::shared_ptr<const HotAdapter>(std::move(adapter));
}

}  // namespace molly::engine
