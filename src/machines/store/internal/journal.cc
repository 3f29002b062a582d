#include "store/internal/journal.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

namespace molly::store::internal {
namespace {

// magic, bytes of the whole frame, checksum, kind, bytes of the first text
constexpr std::size_t magic_at = 0;
constexpr std::size_t size_at = 4;
constexpr std::size_t sum_at = 8;
constexpr std::size_t sum_bytes = 16;
constexpr std::size_t kind_at = sum_at + sum_bytes;
constexpr std::size_t first_at = kind_at + 4;
constexpr std::size_t header_bytes = first_at + 4;
constexpr std::string_view magic = "MJ1\n";
constexpr std::array<const char*, 2> names = {"journal.0", "journal.1"};

void put_number(std::string& bytes, std::size_t at, std::size_t number) {
    for (std::size_t i = 0; i < 4; ++i)
        bytes[at + i] = static_cast<char>((number >> (8 * i)) & 0xFFU);
}

std::size_t number_at(std::string_view bytes, std::size_t at) {
    std::size_t number = 0;
    for (std::size_t i = 0; i < 4; ++i)
        number |= std::size_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return number;
}

/// Over the kind, the lengths and the texts. A truncated prefix-keyed hash cannot be extended.
seal::Hash checksum(std::string_view bytes, const seal::Hash& key) {
    return seal::sha256_link(key, bytes.substr(kind_at));
}

bool read_pair(std::string_view text, std::uint64_t& first, std::uint64_t& second) {
    const char* const end = text.data() + text.size();
    const auto one = std::from_chars(text.data(), end, first);
    if (one.ec != std::errc() || one.ptr == end) return false;
    const auto two = std::from_chars(one.ptr + 1, end, second);
    return two.ec == std::errc() && two.ptr == end;
}

JournalFile parse_file(std::string_view bytes, const seal::Hash& key) {
    JournalFile file;
    while (bytes.find_first_not_of('\0') != std::string_view::npos) {
        Frame frame = Frame::parse(bytes, key);
        file.torn = frame.empty();
        if (file.torn) break;
        bytes.remove_prefix(frame.bytes().size());
        if (frame.kind() == FrameKind::start) {
            if (!read_pair(frame.first(), file.generation, file.base)) file.torn = true;
        } else {
            file.frames.push_back(std::move(frame));
        }
    }
    return file;
}

}  // namespace

Frame::Frame(FrameKind kind, std::string_view first, std::string_view second,
             const seal::Hash& key) {
    const std::size_t size = header_bytes + first.size() + second.size();
    bytes_.reserve(size);
    bytes_.append(magic);
    bytes_.resize(header_bytes);
    bytes_.append(first);
    bytes_.append(second);
    put_number(bytes_, size_at, size);
    bytes_[kind_at] = static_cast<char>(kind);
    put_number(bytes_, first_at, first.size());
    const seal::Hash sum = checksum(bytes_, key);
    std::copy_n(sum.begin(), sum_bytes, bytes_.begin() + sum_at);
}

Frame Frame::parse(std::string_view bytes, const seal::Hash& key) {
    Frame frame;
    if (bytes.size() < header_bytes || bytes.substr(magic_at, magic.size()) != magic) return frame;
    const std::size_t size = number_at(bytes, size_at);
    if (size < header_bytes || size > bytes.size()) return frame;
    bytes = bytes.substr(0, size);
    if (number_at(bytes, first_at) > size - header_bytes) return frame;
    const seal::Hash sum = checksum(bytes, key);
    const std::string_view expected(reinterpret_cast<const char*>(sum.data()), sum_bytes);
    if (bytes.substr(sum_at, sum_bytes) == expected) frame.bytes_ = bytes;
    return frame;
}

FrameKind Frame::kind() const noexcept {
    return static_cast<FrameKind>(bytes_[kind_at]);
}
std::string_view Frame::first() const noexcept {
    return std::string_view(bytes_).substr(header_bytes, number_at(bytes_, first_at));
}
std::string_view Frame::second() const noexcept {
    return std::string_view(bytes_).substr(header_bytes + number_at(bytes_, first_at));
}

Result<std::vector<JournalFile>> read_journal(const std::filesystem::path& folder,
                                              const seal::Hash& key) {
    std::vector<JournalFile> files;
    for (const char* name : names) {
        std::ifstream stream(folder / name, std::ios::binary);
        if (!stream) continue;
        const std::string bytes{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
        if (stream.bad()) return fail(ErrorCode::unavailable, "cannot read the journal");
        if (bytes.find_first_not_of('\0') == std::string::npos) continue;
        files.push_back(parse_file(bytes, key));
    }
    std::sort(files.begin(), files.end(), [](const JournalFile& a, const JournalFile& b) {
        return a.generation < b.generation;
    });
    return files;
}

Result<Journal> Journal::open(const std::filesystem::path& folder, const seal::Hash& key) {
    Journal journal;
    journal.key_ = key;
    for (std::size_t i = 0; i < names.size(); ++i) {
        TRY(journal.files_[i], MappedFile::open(folder / names[i]));
    }
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0) {
        ::fsync(opened);  // the names of the files must survive as well
        ::close(opened);
    }
    return journal;
}

Result<void> Journal::start(std::uint64_t base) {
    for (MappedFile& file : files_)
        file.clear();
    return begin(base, {});
}

Result<void> Journal::begin(std::uint64_t base, const std::vector<const Frame*>& carried) {
    const Frame first(FrameKind::start, fmt::format("{} {}", ++generation_, base), {}, key_);
    std::string bytes = first.bytes();
    for (const Frame* frame : carried)
        bytes += frame->bytes();
    // What an earlier turn left would follow the new frames.
    files_[current_].clear();
    return files_[current_].append(bytes);
}

Result<void> Journal::add(const Frame& frame) {
    return files_[current_].append(frame.bytes());
}

Result<void> Journal::rotate(std::uint64_t base, const std::vector<const Frame*>& carried) {
    current_ = 1 - current_;
    auto begun = begin(base, carried);
    if (!begun) current_ = 1 - current_;
    return begun;
}

void Journal::retire() noexcept {
    files_[1 - current_].clear();
}

Result<void> Journal::sync() const {
    for (const MappedFile& file : files_)
        TRY_DO(file.sync());
    return {};
}

}  // namespace molly::store::internal
