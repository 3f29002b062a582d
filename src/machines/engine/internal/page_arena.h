#pragma once
// Memory for adapters, in pages of one size. A page that comes back keeps its memory for the next
// adapter, so that a load meets no page faults; what is not wanted again goes back to the system.
// Safe from any thread.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"

namespace molly::engine {

class PageArena;

/// Neighbouring pages, until it is destroyed. Their content is whatever was there before.
class PageRun {
public:
    PageRun() = default;
    PageRun(PageRun&& other) noexcept;
    PageRun& operator=(PageRun&& other) noexcept;
    PageRun(const PageRun&) = delete;
    PageRun& operator=(const PageRun&) = delete;
    ~PageRun();

    std::byte* start() const noexcept;
    std::size_t bytes() const noexcept;

private:
    friend class PageArena;
    PageRun(std::shared_ptr<PageArena> arena, std::size_t first, std::size_t count)
        : arena_(std::move(arena)), first_(first), count_(count) {}

    std::shared_ptr<PageArena> arena_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

class PageArena : public std::enable_shared_from_this<PageArena> {
public:
    static constexpr std::size_t small_page = std::size_t{64} << 10U;
    static constexpr std::size_t huge_page = std::size_t{2} << 20U;

    /// Reserves addresses for some more than `bytes_max`; memory comes with use. `page` is one of
    /// the two sizes above. Errors: exhausted.
    static Result<std::shared_ptr<PageArena>> make(std::uint64_t bytes_max, std::size_t page);
    PageArena(const PageArena&) = delete;
    PageArena& operator=(const PageArena&) = delete;
    ~PageArena();

    /// Between `least` and `most` bytes in one piece: as much as lies in memory already, else
    /// fresh, for which free pages elsewhere go back to the system. Errors: exhausted, when no
    /// piece of `least` is left, or more would lie in memory than is allowed.
    Result<PageRun> take(std::size_t least, std::size_t most);
    /// Sees to it that so many free bytes lie in memory, within the arena's size.
    void prepare(std::size_t bytes);
    /// How many bytes may lie in memory, held or free; at first the arena's size. What is held
    /// already stays.
    void allow(std::size_t bytes);
    /// Gives free memory back to the system until at most `keep` bytes of it are left; the bytes
    /// that went.
    std::size_t trim(std::size_t keep);

    std::size_t page() const noexcept { return page_; }
    std::size_t rounded(std::size_t bytes) const noexcept {
        return (bytes + page_ - 1) / page_ * page_;
    }
    std::size_t used() const;   ///< bytes that somebody holds
    std::size_t ready() const;  ///< free bytes that lie in memory
    /// What the system says of it: bytes in memory.
    std::size_t resident() const;

private:
    friend class PageRun;
    enum class State : std::uint8_t { cold, ready, used };
    struct Piece {
        std::size_t first = 0;
        std::size_t count = 0;
    };

    PageArena(std::byte* start, std::size_t pages, std::size_t page, std::size_t pages_max)
        : start_(start), page_(page), allowed_(pages_max), states_(pages, State::cold) {}
    Piece longest_ready(std::size_t most) const;
    Piece first_free(std::size_t least, std::size_t most) const;
    void mark(const Piece& piece, State state);
    void chill(const Piece& piece);
    std::size_t trim_locked(std::size_t keep_pages);
    void give_back(std::size_t first, std::size_t count);

    std::byte* const start_;
    const std::size_t page_;
    mutable std::mutex mutex_;
    std::size_t allowed_;        // pages in memory at once
    std::vector<State> states_;  // shape: [pages]
    std::size_t used_ = 0;       // pages
    std::size_t ready_ = 0;      // pages
};

}  // namespace molly::engine
