#include "engine/internal/hot_adapter.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <llama.h>
#include <unistd.h>

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

Error gone() {
    return Error(ErrorCode::not_found, "the adapter's file is gone; it was removed")
        .reason("adapter_not_found")
        .italian("il file dell'adattatore non c'è più: è stato tolto");
}

/// Where the parts of one layer's factors stand in its piece of memory, in bytes.
struct Layout {
    std::size_t b = 0;  // a comes first
    std::size_t a_steps = 0;
    std::size_t b_steps = 0;
    std::size_t bytes = 0;

    Layout(const LinearLayer& layer, std::uint32_t rank, AdapterNumbers numbers) {
        // Where a vector may be loaded from at once.
        constexpr std::size_t line = 64;
        const std::size_t padded = lora_padded_rank(rank);
        const bool small = numbers == AdapterNumbers::int8;
        const std::size_t width = small ? sizeof(std::int8_t) : sizeof(std::uint16_t);
        b = padded * layer.in * width;
        a_steps = b + padded * layer.out * width;
        b_steps = a_steps + (small ? padded * sizeof(float) : 0);
        bytes = b_steps + (small ? layer.out * sizeof(float) : 0);
        bytes = (bytes + line - 1) / line * line;
    }
};

/// A file that is read from anywhere in it.
class Descriptor {
public:
    explicit Descriptor(const fs::path& file)
        : number_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
        // The disk reads ahead while the first factors are packed.
        if (number_ >= 0) ::posix_fadvise(number_, 0, 0, POSIX_FADV_WILLNEED);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }

    bool read(std::size_t offset, char* to, std::size_t bytes) const {
        while (bytes > 0) {
            const ssize_t got = ::pread(number_, to, bytes, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            to += got;
            offset += static_cast<std::size_t>(got);
            bytes -= static_cast<std::size_t>(got);
        }
        return true;
    }

private:
    int number_;
};

/// Reads one factor as half precision; what it reads into stays in the processor's cache.
class FactorReader {
public:
    FactorReader(const fs::path& file, const gguf_context* gguf) : file_(file), gguf_(gguf) {}

    Result<const std::uint16_t*> read(const ggml_tensor& tensor) {
        const std::size_t bytes = ggml_nbytes(&tensor);
        const auto count = static_cast<std::size_t>(ggml_nelements(&tensor));
        raw_.resize(std::max(raw_.size(), bytes));
        const auto id = gguf_find_tensor(gguf_, ggml_get_name(&tensor));
        const std::size_t offset = gguf_get_data_offset(gguf_) + gguf_get_tensor_offset(gguf_, id);
        if (!file_.read(offset, raw_.data(), bytes)) {
            return misfit(ErrorCode::corrupt, ggml_get_name(&tensor), "the file ends inside it");
        }
        if (tensor.type == GGML_TYPE_F16) return reinterpret_cast<std::uint16_t*>(raw_.data());
        const auto* numbers = reinterpret_cast<const float*>(raw_.data());
        if (tensor.type == GGML_TYPE_BF16) {
            wide_.resize(std::max(wide_.size(), count));
            ggml_bf16_to_fp32_row(reinterpret_cast<const ggml_bf16_t*>(raw_.data()), wide_.data(),
                                  static_cast<std::int64_t>(count));
            numbers = wide_.data();
        }
        halves_.resize(std::max(halves_.size(), count));
        ggml_fp32_to_fp16_row(numbers, halves_.data(), static_cast<std::int64_t>(count));
        return halves_.data();
    }

private:
    Descriptor file_;
    const gguf_context* gguf_;
    std::vector<char> raw_;
    std::vector<float> wide_;
    std::vector<std::uint16_t> halves_;
};

/// Hands out parts of an adapter's pages: one piece where there is one, else several.
class Places {
public:
    Places(PageArena& arena, std::size_t bytes, bool whole)
        : arena_(arena), left_(bytes), whole_(whole) {}

    Result<std::byte*> next(std::size_t bytes) {
        if (bytes > free_) {
            TRY(PageRun run, arena_.take(whole_ ? left_ : bytes, left_));
            at_ = run.start();
            free_ = run.bytes();
            runs_.push_back(std::move(run));
        }
        std::byte* const place = at_;
        at_ += bytes;
        free_ -= bytes;
        left_ -= bytes;
        return place;
    }
    std::vector<PageRun> take() { return std::move(runs_); }

private:
    PageArena& arena_;
    std::size_t left_;
    const bool whole_;
    std::size_t free_ = 0;
    std::byte* at_ = nullptr;
    std::vector<PageRun> runs_;
};

/// Reads both factors of a layer into its piece of memory.
Result<void> pack(const Factors& factors, const Layout& layout, AdapterNumbers numbers,
                  FactorReader& reader, std::byte* at, LoraPair& pair) {
    const std::uint32_t rank = factors.rank();
    if (numbers == AdapterNumbers::f16) {
        auto* const a_at = reinterpret_cast<std::uint16_t*>(at);
        auto* const b_at = reinterpret_cast<std::uint16_t*>(at + layout.b);
        TRY(const auto* a, reader.read(*factors.a));
        pack_lora_a(a, pair.in, rank, a_at);
        TRY(const auto* b, reader.read(*factors.b));
        pack_lora_b(b, pair.out, rank, b_at);
        pair.a = a_at;
        pair.b = b_at;
        return {};
    }
    auto* const a_at = reinterpret_cast<std::int8_t*>(at);
    auto* const b_at = reinterpret_cast<std::int8_t*>(at + layout.b);
    auto* const a_steps = reinterpret_cast<float*>(at + layout.a_steps);
    auto* const b_steps = reinterpret_cast<float*>(at + layout.b_steps);
    TRY(const auto* a, reader.read(*factors.a));
    pack_lora_a(a, pair.in, rank, a_at, a_steps);
    TRY(const auto* b, reader.read(*factors.b));
    pack_lora_b(b, pair.out, rank, b_at, b_steps);
    pair.a_bytes = a_at;
    pair.b_bytes = b_at;
    pair.a_steps = a_steps;
    pair.b_steps = b_steps;
    return {};
}

}  // namespace

/// An adapter file with its tensors named, not read.
struct AdapterFile::Opened {
    fs::path path;
    std::span<const LinearLayer> layers;
    std::unique_ptr<gguf_context, GgufDeleter> file;
    std::unique_ptr<ggml_context, TensorsDeleter> tensors;
    std::vector<Factors> factors;  // by layer
    float alpha = 0;
    AdapterNumbers numbers = AdapterNumbers::f16;
    std::size_t bytes = 0;

    Result<void> sort_factors();
};

Result<void> AdapterFile::Opened::sort_factors() {
    std::map<std::string_view, std::uint32_t> by_name;
    for (std::uint32_t i = 0; i < layers.size(); ++i)
        by_name.emplace(layers[i].name, i);
    std::map<std::uint32_t, Factors> found;
    for (const ggml_tensor* tensor = ggml_get_first_tensor(tensors.get()); tensor != nullptr;
         tensor = ggml_get_next_tensor(tensors.get(), const_cast<ggml_tensor*>(tensor))) {
        const std::string_view name = ggml_get_name(tensor);
        const bool is_a = name.ends_with(suffix_a);
        const auto layer =
            by_name.find(name.substr(0, name.size() - std::min(name.size(), suffix_a.size())));
        if ((!is_a && !name.ends_with(suffix_b)) || layer == by_name.end()) {
            return misfit(ErrorCode::conflict, name,
                          "no linear layer of the base has this name; it was made for another one");
        }
        Factors& pair = found[layer->second];
        pair.layer = layer->second;
        (is_a ? pair.a : pair.b) = tensor;
    }
    for (const auto& [layer, pair] : found) {
        TRY_DO(check(pair, layers[layer]));
        factors.push_back(pair);
        bytes += Layout(layers[layer], pair.rank(), numbers).bytes;
    }
    if (factors.empty()) return fail(ErrorCode::corrupt, "the adapter has no tensors");
    return {};
}

AdapterFile::AdapterFile(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
AdapterFile::AdapterFile(AdapterFile&& other) noexcept = default;
AdapterFile& AdapterFile::operator=(AdapterFile&& other) noexcept = default;
AdapterFile::~AdapterFile() = default;

std::size_t AdapterFile::bytes() const noexcept {
    return opened_->bytes;
}

Result<AdapterFile> AdapterFile::open(const fs::path& file, std::span<const LinearLayer> layers,
                                      AdapterNumbers numbers) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return fail(gone());
    auto opened = std::make_unique<Opened>();
    opened->path = file;
    opened->layers = layers;
    opened->numbers = numbers;
    ggml_context* tensors = nullptr;
    opened->file.reset(gguf_init_from_file(file.c_str(), {.no_alloc = true, .ctx = &tensors}));
    opened->tensors.reset(tensors);
    if (!opened->file || !opened->tensors) {
        return fail(ErrorCode::corrupt, fmt::format("{} is no sound GGUF file; import the adapter "
                                                    "again",
                                                    file.string()));
    }
    const auto key = gguf_find_key(opened->file.get(), "adapter.lora.alpha");
    if (key >= 0 && gguf_get_kv_type(opened->file.get(), key) == GGUF_TYPE_FLOAT32)
        opened->alpha = gguf_get_val_f32(opened->file.get(), key);
    TRY_DO(opened->sort_factors());
    return AdapterFile(std::move(opened));
}

Result<std::shared_ptr<const HotAdapter>> AdapterFile::load(PageArena& arena) const {
    auto loaded = load(arena, false);
    if (loaded || loaded.error().code() != ErrorCode::exhausted) return loaded;
    // Small pieces leave ends over, which were too many: in one piece there is none.
    return load(arena, true);
}

Result<std::shared_ptr<const HotAdapter>> AdapterFile::load(PageArena& arena, bool whole) const {
    std::shared_ptr<HotAdapter> adapter(new HotAdapter);
    adapter->pairs_.resize(opened_->layers.size());
    FactorReader reader(opened_->path, opened_->file.get());
    Places places(arena, bytes(), whole);
    for (const Factors& factors : opened_->factors) {
        const LinearLayer& layer = opened_->layers[factors.layer];
        const std::uint32_t rank = factors.rank();
        LoraPair& pair = adapter->pairs_[factors.layer];
        pair.in = static_cast<std::uint32_t>(layer.in);
        pair.out = static_cast<std::uint32_t>(layer.out);
        pair.rank = lora_padded_rank(rank);
        pair.scale = opened_->alpha != 0 ? opened_->alpha / static_cast<float>(rank) : 1;
        const Layout layout(layer, rank, opened_->numbers);
        TRY(std::byte* const at, places.next(layout.bytes));
        TRY_DO(pack(factors, layout, opened_->numbers, reader, at, pair));
    }
    adapter->pages_ = places.take();
    adapter->matched_ = opened_->factors.size();
    return std::shared_ptr<const HotAdapter>(std::move(adapter));
}

std::size_t HotAdapter::bytes() const noexcept {
    std::size_t bytes = 0;
    for (const PageRun& run : pages_)
        bytes += run.bytes();
    return bytes;
}

std::size_t usual_adapter_bytes(std::span<const LinearLayer> layers, std::uint32_t rank,
                                AdapterNumbers numbers) {
    std::size_t bytes = 0;
    for (const LinearLayer& layer : layers)
        if (layer.usable) bytes += Layout(layer, rank, numbers).bytes;
    return bytes;
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
