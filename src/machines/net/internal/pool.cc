#include "net/internal/pool.h"

#include <algorithm>
#include <utility>

namespace molly::net::internal {

std::shared_ptr<Stream> Pool::take(const PoolKey& wanted) {
    const auto shelf = std::find_if(shelves_.begin(), shelves_.end(),
                                    [&wanted](const Shelf& each) { return each.key == wanted; });
    if (shelf == shelves_.end()) return nullptr;
    while (!shelf->idle.empty()) {
        std::shared_ptr<Stream> stream = std::move(shelf->idle.back());
        shelf->idle.pop_back();
        stream->unwatch();
        stream->deadline(MonoTime::max());
        // Bytes that nobody asked for would be read as the next reply.
        if (!stream->ended() && !stream->closed() && stream->unread().empty()) return stream;
        stream->close();
    }
    return nullptr;
}

void Pool::give(const PoolKey& wanted, std::shared_ptr<Stream> stream, std::size_t idle_max,
                std::chrono::milliseconds expiry) {
    auto shelf = std::find_if(shelves_.begin(), shelves_.end(),
                              [&wanted](const Shelf& each) { return each.key == wanted; });
    if (shelf == shelves_.end()) {
        std::erase_if(shelves_, [](const Shelf& each) { return each.idle.empty(); });
        shelves_.push_back(Shelf{wanted, {}});
        shelf = std::prev(shelves_.end());
    }
    if (shelf->idle.size() >= idle_max) {
        stream->close();
        return;
    }
    stream->watch([this, raw = stream.get()] { forget(raw); });
    stream->deadline(std::chrono::steady_clock::now() + expiry);
    if (!stream->read()) {
        stream->close();
        return;
    }
    shelf->idle.push_back(std::move(stream));
}

void Pool::forget(const Stream* stream) {
    for (Shelf& shelf : shelves_) {
        const auto found =
            std::find_if(shelf.idle.begin(), shelf.idle.end(),
                         [stream](const auto& each) { return each.get() == stream; });
        if (found == shelf.idle.end()) continue;
        const std::shared_ptr<Stream> kept = std::move(*found);
        shelf.idle.erase(found);
        kept->close();
        return;
    }
}

}  // namespace molly::net::internal
