#include "models/internal/part.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "base/json.h"

namespace molly::models::internal {
namespace {

namespace fs = std::filesystem;

std::string text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return std::string(value->get_string().data(), value->get_string().size());
}

}  // namespace

Result<Part> Part::open(const fs::path& file, const std::string& source, const Progress& progress) {
    Part part;
    part.path_ = file.string() + ".part";
    part.note_ = file.string() + ".part.json";
    part.source_ = source;
    TRY(part.file_, open_file(part.path_));
    if (!lock(part.file_, false)) {
        return fail(
            Error(ErrorCode::conflict, fmt::format("another pull of {} is running; wait for it",
                                                   file.filename().string()))
                .italian(fmt::format("un altro scaricamento di {} è in corso; attenderlo",
                                     file.filename().string())));
    }
    part.load(source);
    TRY_DO(part.hash_bytes(progress));
    return part;
}

void Part::load(const std::string& source) {
    std::ifstream stream(note_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto note = parse_json(text);
    const json::object* object = note ? note->if_object() : nullptr;
    if (object == nullptr || text_of(*object, "source") != source) {
        (void)!::ftruncate(file_.get(), 0);  // bytes of something else
        return;
    }
    validator_ = text_of(*object, "validator");
    const json::value* total = object->if_contains("total");
    json::error_code error;
    if (total != nullptr) total_ = total->to_number<std::uint64_t>(error);
    if (error) total_ = 0;
}

Result<void> Part::hash_bytes(const Progress& progress) {
    std::string block(1U << 20U, '\0');
    for (;;) {
        const ssize_t count = ::read(file_.get(), block.data(), block.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return file_error(path_, "read");
        if (count == 0) return {};
        hash_.add({block.data(), static_cast<std::size_t>(count)});
        done_ += static_cast<std::uint64_t>(count);
        if (progress) progress(done_, total_);
    }
}

Result<void> Part::save() const {
    const json::object note{{"source", source_}, {"validator", validator_}, {"total", total_}};
    return replace_file(note_, to_text(note) + "\n");
}

Result<void> Part::restart(std::string validator, std::uint64_t total) {
    if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0)
        return file_error(path_, "empty");
    hash_ = seal::HashStream();
    done_ = 0;
    total_ = total;
    validator_ = std::move(validator);
    return save();
}

Result<void> Part::append(std::string_view bytes) {
    TRY_DO(write_all(file_, path_, bytes));
    hash_.add(bytes);
    done_ += bytes.size();
    return {};
}

Result<std::string> Part::finish() {
    if (::fsync(file_.get()) != 0) return file_error(path_, "write");
    return seal::to_hex(hash_.take());
}

void Part::discard() noexcept {
    std::error_code ignored;
    fs::remove(path_, ignored);
    forget();
}

void Part::forget() noexcept {
    std::error_code ignored;
    fs::remove(note_, ignored);
}

}  // namespace molly::models::internal
