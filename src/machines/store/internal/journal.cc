#include "store/internal/journal.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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

std::unexpected<Error> disk_error(std::string_view what) {
    const std::string cause = std::strerror(errno);
    const bool full = errno == ENOSPC || errno == EDQUOT;
    if (full) {
        return fail(Error(ErrorCode::exhausted,
                          "no room left on the disk of the data folder; free some space")
                        .italian("spazio esaurito sul disco della cartella dati; liberarne"));
    }
    return fail(ErrorCode::unavailable, fmt::format("cannot {} the journal: {}", what, cause));
}

Result<void> write_at(int file, std::string_view bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t written =
            ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return disk_error("write");
        bytes.remove_prefix(static_cast<std::size_t>(written));
        offset += static_cast<std::uint64_t>(written);
    }
    return {};
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
    while (!bytes.empty()) {
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
        if (stream.bad()) return disk_error("read");
        if (!bytes.empty()) files.push_back(parse_file(bytes, key));
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
        const std::filesystem::path path = folder / names[i];
        journal.files_[i] = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (journal.files_[i] < 0) return disk_error("open");
    }
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0) {
        ::fsync(opened);  // the names of the files must survive as well
        ::close(opened);
    }
    return journal;
}

Journal::Journal(Journal&& other) noexcept
    : files_(std::exchange(other.files_, {-1, -1})),
      current_(other.current_),
      end_(other.end_),
      generation_(other.generation_),
      key_(other.key_) {}

Journal::~Journal() {
    for (const int file : files_) {
        if (file >= 0) ::close(file);
    }
}

Result<void> Journal::start(std::uint64_t base) {
    for (const int file : files_) {
        if (::ftruncate(file, 0) != 0) return disk_error("empty");
    }
    return begin(base, {});
}

Result<void> Journal::begin(std::uint64_t base, const std::vector<const Frame*>& carried) {
    const Frame first(FrameKind::start, fmt::format("{} {}", ++generation_, base), {}, key_);
    std::string bytes = first.bytes();
    for (const Frame* frame : carried)
        bytes += frame->bytes();
    // What an earlier turn left would follow the new frames.
    if (::ftruncate(files_[current_], 0) != 0) return disk_error("empty");
    end_ = 0;
    return write(bytes);
}

Result<void> Journal::add(const Frame& frame) {
    return write(frame.bytes());
}

Result<void> Journal::write(std::string_view bytes) {
    auto written = write_at(files_[current_], bytes, end_);
    if (!written) {
        // The next frame begins where this one did; a torn tail would hide it at the next start.
        if (::ftruncate(files_[current_], static_cast<off_t>(end_)) != 0) return disk_error("mend");
        return written;
    }
    end_ += bytes.size();
    return {};
}

Result<void> Journal::rotate(std::uint64_t base, const std::vector<const Frame*>& carried) {
    const std::size_t old = current_;
    const std::uint64_t old_end = end_;
    current_ = 1 - current_;
    auto begun = begin(base, carried);
    if (begun) return begun;
    current_ = old;
    end_ = old_end;
    return begun;
}

void Journal::retire() noexcept {
    // A file that stays full does no harm: its traces are known by their numbers.
    (void)!::ftruncate(files_[1 - current_], 0);
}

Result<void> Journal::sync() const {
    for (const int file : files_) {
        if (::fdatasync(file) != 0) return disk_error("sync");
    }
    return {};
}

}  // namespace molly::store::internal
