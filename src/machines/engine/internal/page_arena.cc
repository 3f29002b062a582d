#include "engine/internal/page_arena.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace molly::engine {
namespace {

std::unexpected<Error> no_room(std::uint64_t bytes) {
    return fail(
        Error(ErrorCode::exhausted,
              fmt::format("no {:.1f} MiB of memory for an adapter; close something, pin "
                          "fewer adapters or lower engine.adapter_memory_mib",
                          static_cast<double>(bytes) / 1048576))
            .italian(fmt::format("mancano {:.1f} MiB di memoria per un adattatore; chiudere "
                                 "qualcosa, fissarne meno o abbassare "
                                 "engine.adapter_memory_mib",
                                 static_cast<double>(bytes) / 1048576)));
}

/// Brings pages into memory without changing what is in them.
void touch(std::byte* start, std::size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
    constexpr std::size_t least_page = 4096;
    for (std::size_t at = 0; at < bytes; at += least_page) {
        volatile std::byte& one = start[at];
        one = one;
    }
}

}  // namespace

PageRun::PageRun(PageRun&& other) noexcept
    : arena_(std::move(other.arena_)),
      first_(std::exchange(other.first_, 0)),
      count_(std::exchange(other.count_, 0)) {}
PageRun& PageRun::operator=(PageRun&& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(first_, other.first_);
    std::swap(count_, other.count_);
    return *this;
}
PageRun::~PageRun() {
    if (arena_) arena_->give_back(first_, count_);
}
std::byte* PageRun::start() const noexcept {
    return arena_ ? arena_->start_ + first_ * arena_->page_ : nullptr;
}
std::size_t PageRun::bytes() const noexcept {
    return arena_ ? count_ * arena_->page_ : 0;
}

Result<std::shared_ptr<PageArena>> PageArena::make(std::uint64_t bytes_max, std::size_t page) {
    const std::size_t pages_max = std::max<std::size_t>(1, bytes_max / page);
    // Addresses are cheap, and free ones side by side are what pieces of many sizes need.
    const std::size_t pages = 4 * pages_max + 1;
    const std::size_t bytes = pages * page;
    // Whole huge pages, so that one comes and goes alone.
    void* mapped = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return no_room(bytes_max);
    auto* start = static_cast<std::byte*>(mapped);
    const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(start) % page) % page;
    if (before > 0) munmap(start, before);
    start += before;
    if (before < page) munmap(start + bytes, page - before);
    // A small page must not bring a huge one into memory.
    madvise(start, bytes, page == huge_page ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return std::shared_ptr<PageArena>(new PageArena(start, pages, page, pages_max));
}

PageArena::~PageArena() {
    munmap(start_, states_.size() * page_);
}

PageArena::Piece PageArena::longest_ready(std::size_t most) const {
    Piece best;
    Piece piece;
    for (std::size_t at = 0; at < states_.size() && best.count < most; ++at) {
        if (states_[at] != State::ready) {
            piece.count = 0;
            continue;
        }
        if (piece.count++ == 0) piece.first = at;
        if (piece.count > best.count) best = piece;
    }
    return best;
}

PageArena::Piece PageArena::first_free(std::size_t least, std::size_t most) const {
    Piece best;
    Piece piece;
    for (std::size_t at = 0; at < states_.size() && piece.count < most; ++at) {
        if (states_[at] == State::used) {
            if (piece.count >= least && best.count == 0) best = piece;
            piece.count = 0;
            continue;
        }
        if (piece.count++ == 0) piece.first = at;
    }
    if (piece.count == most) return piece;
    return piece.count >= least && best.count == 0 ? piece : best;
}

void PageArena::mark(const Piece& piece, State state) {
    for (std::size_t at = piece.first; at < piece.first + piece.count; ++at) {
        used_ -= states_[at] == State::used ? 1 : 0;
        ready_ -= states_[at] == State::ready ? 1 : 0;
        states_[at] = state;
    }
    if (state == State::used) used_ += piece.count;
    if (state == State::ready) ready_ += piece.count;
}

Result<PageRun> PageArena::take(std::size_t least, std::size_t most) {
    const std::size_t pages_least = rounded(std::max<std::size_t>(least, 1)) / page_;
    const std::size_t pages_most = std::max(pages_least, rounded(most) / page_);
    const std::scoped_lock lock(mutex_);
    Piece piece = longest_ready(pages_most);
    if (piece.count < pages_least) piece = first_free(pages_least, pages_most);
    if (piece.count < pages_least) return no_room(least);
    if (used_ + piece.count > allowed_) return no_room(least);
    mark(piece, State::used);
    // Fresh pages take the place of free ones that lay elsewhere.
    if (used_ + ready_ > allowed_) trim_locked(allowed_ - used_);
    return PageRun(shared_from_this(), piece.first, piece.count);
}

void PageArena::allow(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    allowed_ = bytes / page_;
}

void PageArena::prepare(std::size_t bytes) {
    Piece piece;
    {
        const std::scoped_lock lock(mutex_);
        const std::size_t room = allowed_ - std::min(allowed_, used_ + ready_);
        const std::size_t wanted = rounded(bytes) / page_;
        const std::size_t missing = std::min(room, wanted - std::min(wanted, ready_));
        if (missing == 0) return;
        // Cold pages alone: a piece that spans ready ones would count them twice.
        for (std::size_t at = 0; at < states_.size() && piece.count < missing; ++at) {
            if (states_[at] != State::cold) {
                piece.count = 0;
            } else if (piece.count++ == 0) {
                piece.first = at;
            }
        }
        if (piece.count == 0) return;
        mark(piece, State::used);
    }
    touch(start_ + piece.first * page_, piece.count * page_);
    const std::scoped_lock lock(mutex_);
    mark(piece, State::ready);
}

void PageArena::chill(const Piece& piece) {
    madvise(start_ + piece.first * page_, piece.count * page_, MADV_DONTNEED);
    mark(piece, State::cold);
}

std::size_t PageArena::trim_locked(std::size_t keep_pages) {
    std::size_t gone = 0;
    // From the end: what is taken next lies at the beginning.
    for (std::size_t at = states_.size(); at > 0 && ready_ > keep_pages; --at) {
        if (states_[at - 1] != State::ready) continue;
        chill({.first = at - 1, .count = 1});
        ++gone;
    }
    return gone * page_;
}

std::size_t PageArena::trim(std::size_t keep) {
    const std::scoped_lock lock(mutex_);
    return trim_locked(keep / page_);
}

void PageArena::give_back(std::size_t first, std::size_t count) {
    const std::scoped_lock lock(mutex_);
    mark({.first = first, .count = count}, State::ready);
}

std::size_t PageArena::used() const {
    const std::scoped_lock lock(mutex_);
    return used_ * page_;
}

std::size_t PageArena::ready() const {
    const std::scoped_lock lock(mutex_);
    return ready_ * page_;
}

std::size_t PageArena::resident() const {
    const auto system_page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(states_.size() * page_ / system_page);
    if (mincore(start_, states_.size() * page_, pages.data()) != 0) return 0;
    return static_cast<std::size_t>(
               std::ranges::count_if(pages, [](unsigned char page) { return (page & 1U) != 0; })) *
           system_page;
}

}  // namespace molly::engine
