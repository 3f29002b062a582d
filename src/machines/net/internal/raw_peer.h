#pragma once
// Plain blocking sockets for tests: clients and servers that say exactly the bytes they are told.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <list>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace molly::net::internal {

/// One end of a connection.
class RawPeer {
public:
    explicit RawPeer(int descriptor) : descriptor_(descriptor) {}
    RawPeer(RawPeer&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    RawPeer(const RawPeer&) = delete;
    RawPeer& operator=(const RawPeer&) = delete;
    RawPeer& operator=(RawPeer&&) = delete;
    ~RawPeer() { close(); }

    static RawPeer connect(std::uint16_t port) {
        RawPeer peer(::socket(AF_INET, SOCK_STREAM, 0));
        const sockaddr_in address = loopback(port);
        EXPECT_EQ(::connect(peer.descriptor_, as_sockaddr(address), sizeof(address)), 0);
        return peer;
    }
    static sockaddr_in loopback(std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return address;
    }
    static const sockaddr* as_sockaddr(const sockaddr_in& address) {
        return reinterpret_cast<const sockaddr*>(&address);
    }

    int descriptor() const { return descriptor_; }
    /// False once the other end is gone.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// Some bytes; empty at the end, after a reset, or when nothing came within `patience`.
    std::string receive(std::chrono::milliseconds patience = std::chrono::seconds(5)) {
        pollfd waiting{descriptor_, POLLIN, 0};
        if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return {};
        char buffer[16384];
        const auto count = ::recv(descriptor_, buffer, sizeof(buffer), 0);
        return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : std::string();
    }
    /// Reads until `text` has come, and returns everything so far.
    std::string read_until(std::string_view text) {
        std::string all;
        while (all.find(text) == std::string::npos) {
            const std::string more = receive();
            if (more.empty()) break;
            all += more;
        }
        return all;
    }
    std::string read_to_end() {
        std::string all;
        for (;;) {
            const std::string more = receive();
            if (more.empty()) return all;
            all += more;
        }
    }
    /// One request with a Content-Length body, or one reply.
    std::string read_message() {
        std::string all = read_until("\r\n\r\n");
        const auto head = all.find("\r\n\r\n");
        const auto length = all.find("content-length: ");
        if (head == std::string::npos || length == std::string::npos || length > head) return all;
        const std::size_t size = head + 4 + std::stoul(all.substr(length + 16));
        while (all.size() < size) {
            const std::string more = receive();
            if (more.empty()) break;
            all += more;
        }
        return all;
    }
    void finish_sending() { ::shutdown(descriptor_, SHUT_WR); }
    void close() {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

private:
    int descriptor_;
};

/// Listens on a free port of the loopback and runs `serve` for each connection on its own thread.
class RawServer {
public:
    using Serve = std::function<void(RawPeer&)>;

    explicit RawServer(Serve serve)
        : serve_(std::move(serve)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address = RawPeer::loopback(0);
        EXPECT_EQ(::bind(listener_, RawPeer::as_sockaddr(address), sizeof(address)), 0);
        EXPECT_EQ(::listen(listener_, 16), 0);
        std::signal(SIGPIPE, SIG_IGN);  // OpenSSL on a plain descriptor raises it
        socklen_t size = sizeof(address);
        EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
        port_ = ntohs(address.sin_port);
        accepting_ = std::thread([this] { accept_all(); });
    }
    RawServer(const RawServer&) = delete;
    RawServer& operator=(const RawServer&) = delete;
    RawServer(RawServer&&) = delete;
    RawServer& operator=(RawServer&&) = delete;
    ~RawServer() {
        ::shutdown(listener_, SHUT_RDWR);
        accepting_.join();
        ::close(listener_);
        {
            const std::scoped_lock lock(mutex_);
            for (const int descriptor : open_)
                ::shutdown(descriptor, SHUT_RDWR);
        }
        for (std::thread& each : serving_)
            each.join();
    }

    std::uint16_t port() const { return port_; }
    int accepted() const { return accepted_; }

private:
    void accept_all() {
        for (;;) {
            const int descriptor = ::accept(listener_, nullptr, nullptr);
            if (descriptor < 0) return;
            ++accepted_;
            serving_.emplace_back([this, descriptor] { serve(descriptor); });
        }
    }

    void serve(int descriptor) {
        {
            const std::scoped_lock lock(mutex_);
            open_.insert(descriptor);
        }
        RawPeer peer(descriptor);
        serve_(peer);
        const std::scoped_lock lock(mutex_);
        open_.erase(descriptor);
        peer.close();
    }

    Serve serve_;
    std::mutex mutex_;
    std::set<int> open_;
    int listener_;
    std::uint16_t port_ = 0;
    std::atomic<int> accepted_ = 0;
    std::thread accepting_;
    std::list<std::thread> serving_;
};

/// Resident memory of this process in bytes: `VmRSS` now, `VmHWM` at most so far.
inline std::size_t resident_bytes(std::string_view field = "VmRSS:") {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.starts_with(field)) return std::stoul(line.substr(field.size())) * 1024;
    }
    return 0;
}

}  // namespace molly::net::internal
