#include "engine/head.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace molly::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* head_name = "output.weight";
constexpr const char* embedding_name = "token_embd.weight";

using GgufPointer = std::unique_ptr<gguf_context, decltype(&gguf_free)>;
using GgmlPointer = std::unique_ptr<ggml_context, decltype(&ggml_free)>;

struct Type {
    std::string_view name;
    ggml_type type;
};
constexpr std::array types = {
    Type{"q4_0", GGML_TYPE_Q4_0}, Type{"q4_1", GGML_TYPE_Q4_1}, Type{"q5_0", GGML_TYPE_Q5_0},
    Type{"q5_1", GGML_TYPE_Q5_1}, Type{"q8_0", GGML_TYPE_Q8_0}, Type{"q4_K", GGML_TYPE_Q4_K},
    Type{"q5_K", GGML_TYPE_Q5_K}, Type{"q6_K", GGML_TYPE_Q6_K}, Type{"f16", GGML_TYPE_F16},
};

bool same_letters(std::string_view one, std::string_view other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) ==
               std::tolower(static_cast<unsigned char>(b));
    });
}

Result<ggml_type> type_named(std::string_view name) {
    for (const Type& each : types)
        if (same_letters(each.name, name)) return each.type;
    return fail(
        Error(
            ErrorCode::invalid_request,
            fmt::format("no head type is called {}; there are: q4_0 q4_1 q5_0 q5_1 q8_0 q4_K q5_K "
                        "q6_K f16",
                        name))
            .italian(fmt::format("nessun tipo si chiama {}; ci sono: q4_0 q4_1 q5_0 q5_1 q8_0 q4_K "
                                 "q5_K q6_K f16",
                                 name))
            .param("head"));
}

/// A file's bytes in memory, read only.
class Mapped {
public:
    Mapped() = default;
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    Mapped(Mapped&&) = delete;
    Mapped& operator=(Mapped&&) = delete;
    ~Mapped() {
        if (data_ != MAP_FAILED) ::munmap(data_, bytes_);
    }
    bool open(const fs::path& file) {
        std::error_code error;
        bytes_ = fs::file_size(file, error);
        const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
        if (error || descriptor < 0) return false;
        data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
        ::close(descriptor);
        return data_ != MAP_FAILED;
    }
    std::size_t size() const { return bytes_; }
    char* at(std::size_t offset) const { return static_cast<char*>(data_) + offset; }

private:
    void* data_ = MAP_FAILED;
    std::size_t bytes_ = 0;
};

/// A GGUF file's tensors, each with its bytes in the mapped file.
struct Source {
    Mapped bytes;
    GgufPointer file{nullptr, gguf_free};
    GgmlPointer tensors{nullptr, ggml_free};
};

Result<void> open_source(const fs::path& model, Source& source) {
    if (!source.bytes.open(model)) {
        return fail(Error(ErrorCode::not_found,
                          fmt::format("cannot read the model file {}", model.string()))
                        .italian(fmt::format("impossibile leggere il file del modello {}",
                                             model.string())));
    }
    ggml_context* read = nullptr;
    gguf_init_params params{};
    params.no_alloc = true;
    params.ctx = &read;
    source.file.reset(gguf_init_from_file(model.c_str(), params));
    source.tensors.reset(read);
    const auto damaged =
        fail(ErrorCode::corrupt, fmt::format("{} is damaged or no GGUF model", model.string()));
    if (source.file == nullptr || source.tensors == nullptr) return damaged;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(source.file.get()); ++i) {
        ggml_tensor* tensor =
            ggml_get_tensor(source.tensors.get(), gguf_get_tensor_name(source.file.get(), i));
        const std::size_t offset =
            gguf_get_data_offset(source.file.get()) + gguf_get_tensor_offset(source.file.get(), i);
        if (offset + ggml_nbytes(tensor) > source.bytes.size()) return damaged;
        tensor->data = source.bytes.at(offset);
    }
    return {};
}

/// `from` in another type, a block of rows at a time.
void convert(const ggml_tensor& from, ggml_tensor& to) {
    constexpr std::int64_t rows_at_once = 256;
    const std::int64_t columns = from.ne[0];
    const std::int64_t rows = ggml_nrows(&from);
    const ggml_type_traits* traits = ggml_get_type_traits(from.type);
    std::vector<float> numbers(static_cast<std::size_t>(rows_at_once * columns));
    const std::size_t row_bytes = ggml_row_size(from.type, columns);
    for (std::int64_t row = 0; row < rows; row += rows_at_once) {
        const std::int64_t count = std::min(rows_at_once, rows - row);
        const char* read =
            static_cast<const char*>(from.data) + static_cast<std::size_t>(row) * row_bytes;
        if (from.type == GGML_TYPE_F32) {
            std::memcpy(numbers.data(), read, static_cast<std::size_t>(count) * row_bytes);
        } else {
            traits->to_float(read, numbers.data(), count * columns);
        }
        ggml_quantize_chunk(to.type, numbers.data(),
                            static_cast<char*>(to.data) +
                                static_cast<std::size_t>(row) * ggml_row_size(to.type, columns),
                            0, count, columns, nullptr);
    }
}

Result<void> write_whole(const gguf_context* file, const fs::path& out) {
    fs::path part = out;
    part += ".part";
    std::error_code error;
    if (gguf_write_to_file(file, part.c_str(), false)) fs::rename(part, out, error);
    if (error || !fs::exists(out)) {
        std::error_code ignored;
        fs::remove(part, ignored);
        return fail(Error(ErrorCode::unavailable,
                          fmt::format("cannot write {}: is the disk full, or the folder missing?",
                                      out.string()))
                        .italian(fmt::format("impossibile scrivere {}: disco pieno, o cartella "
                                             "mancante?",
                                             out.string())));
    }
    return {};
}

std::unexpected<Error> no_head(const fs::path& model) {
    return fail(Error(ErrorCode::unsupported,
                      fmt::format("{} has no output head of two dimensions, so there is nothing to "
                                  "make smaller",
                                  model.string()))
                    .italian(fmt::format("{} non ha una testa di uscita a due dimensioni: non c'è "
                                         "nulla da rimpicciolire",
                                         model.string())));
}

std::unexpected<Error> odd_width(std::int64_t width, ggml_type type) {
    return fail(
        Error(
            ErrorCode::unsupported,
            fmt::format("{} holds rows in blocks of {}, and this head is {} wide; take q4_0, q5_0 "
                        "or q8_0",
                        ggml_type_name(type), ggml_blck_size(type), width))
            .italian(fmt::format("{} tiene le righe in blocchi di {}, e questa testa è larga {}; "
                                 "usare q4_0, q5_0 o q8_0",
                                 ggml_type_name(type), ggml_blck_size(type), width)));
}

}  // namespace

Result<HeadChange> requantize_head(const fs::path& model, const fs::path& out,
                                   std::string_view type,
                                   const std::map<std::string, std::string>& marks) {
    TRY(const ggml_type wanted, type_named(type));
    Source source;
    TRY_DO(open_source(model, source));
    ggml_tensor* head = ggml_get_tensor(source.tensors.get(), head_name);
    const bool shared = head == nullptr;
    if (shared) head = ggml_get_tensor(source.tensors.get(), embedding_name);
    if (head == nullptr || ggml_n_dims(head) != 2) return no_head(model);
    if (head->ne[0] % ggml_blck_size(wanted) != 0) return odd_width(head->ne[0], wanted);
    if (head->type != GGML_TYPE_F32 && ggml_get_type_traits(head->type)->to_float == nullptr)
        return no_head(model);

    ggml_init_params params{};
    params.mem_size = ggml_row_size(wanted, head->ne[0]) * static_cast<std::size_t>(head->ne[1]) +
                      (std::size_t{1} << 16U);
    const GgmlPointer memory(ggml_init(params), ggml_free);
    if (memory == nullptr) return fail(ErrorCode::exhausted, "no memory for the new head");
    ggml_tensor* made = ggml_new_tensor_2d(memory.get(), wanted, head->ne[0], head->ne[1]);
    ggml_set_name(made, head_name);
    convert(*head, *made);

    const GgufPointer written(gguf_init_empty(), gguf_free);
    gguf_set_kv(written.get(), source.file.get());
    for (const auto& [key, value] : marks) {
        if (gguf_find_key(written.get(), key.c_str()) < 0)
            gguf_set_val_str(written.get(), key.c_str(), value.c_str());
    }
    for (ggml_tensor* each = ggml_get_first_tensor(source.tensors.get()); each != nullptr;
         each = ggml_get_next_tensor(source.tensors.get(), each))
        gguf_add_tensor(written.get(), each == head && !shared ? made : each);
    if (shared) gguf_add_tensor(written.get(), made);
    TRY_DO(write_whole(written.get(), out));
    return HeadChange{.from = ggml_type_name(head->type),
                      .to = ggml_type_name(wanted),
                      .shared = shared,
                      .bytes_before = ggml_nbytes(head),
                      .bytes_after = ggml_nbytes(made)};
}

}  // namespace molly::engine
