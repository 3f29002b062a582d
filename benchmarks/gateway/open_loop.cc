// Sends one HTTP request again and again at a fixed rate and measures each reply from the moment at
// which its request was due, not from the moment at which it could be sent: a server that stalls
// is charged for everything that had to wait (no coordinated omission).
//
// gateway_load PORT REQUEST_FILE RATE SECONDS CONNECTIONS
// The file holds a whole request, head and body. Prints one line of JSON; times are microseconds.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// Replies to requests that were due before this are not counted: caches and pools fill.
constexpr std::chrono::milliseconds warm_up{500};
// What is unanswered so long after the last request was due counts as lost.
constexpr std::chrono::seconds patience{10};

struct Options {
    std::uint16_t port = 0;
    std::string request;
    double rate = 0;  // requests per second
    double seconds = 0;
    std::size_t connections = 0;
};

/// Recognizes the end of a reply with a Content-Length or in chunks.
class ReplyEnd {
public:
    /// True when `bytes` complete the reply.
    bool take(std::string_view bytes) {
        if (!length_ && !chunked_) {
            head_ += bytes;
            const auto end = head_.find("\r\n\r\n");
            if (end == std::string::npos) return false;
            read_head(std::string_view(head_).substr(0, end + 2));
            body_bytes_ = head_.size() - end - 4;
            tail_.assign(head_, head_.size() - std::min<std::size_t>(head_.size(), 5));
        } else {
            body_bytes_ += bytes.size();
            tail_ += bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 5));
            if (tail_.size() > 5) tail_.erase(0, tail_.size() - 5);
        }
        return chunked_ ? tail_ == "0\r\n\r\n" : body_bytes_ >= *length_;
    }
    bool ok() const { return head_.starts_with("HTTP/1.1 200"); }
    void reset() { *this = ReplyEnd(); }

private:
    void read_head(std::string_view head) {
        for (char& letter : head_)
            letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
        head_.replace(0, 5, "HTTP/");
        length_ = 0;
        const auto length = head.find("\r\ncontent-length:");
        if (length != std::string_view::npos) {
            const auto digits = head.find_first_of("0123456789", length);
            std::from_chars(head.data() + digits, head.data() + head.size(), *length_);
        }
        chunked_ = head.find("\r\ntransfer-encoding: chunked") != std::string_view::npos;
    }

    std::string head_;
    std::string tail_;
    std::optional<std::size_t> length_;
    bool chunked_ = false;
    std::size_t body_bytes_ = 0;
};

struct Connection {
    int descriptor = -1;
    Clock::time_point due;  // of the request under way
    bool busy = false;
    ReplyEnd reply;
};

class Load {
public:
    explicit Load(Options options) : options_(std::move(options)), poll_(::epoll_create1(0)) {
        connections_.resize(options_.connections);
        for (std::size_t i = 0; i < connections_.size(); ++i)
            connect(i);
    }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    Load(Load&&) = delete;
    Load& operator=(Load&&) = delete;
    ~Load() { ::close(poll_); }

    void run() {
        const auto total = static_cast<std::uint64_t>(options_.rate * options_.seconds);
        const nanoseconds interval(static_cast<std::int64_t>(1e9 / options_.rate));
        begun_ = Clock::now();
        const auto end = begun_ + interval * total + patience;
        std::uint64_t issued = 0;
        while (answered_ + failed_ < total && Clock::now() < end) {
            auto now = Clock::now();
            while (issued < total && begun_ + interval * issued <= now) {
                waiting_.push_back(begun_ + interval * issued++);
            }
            send_waiting();
            const auto next = issued < total ? begun_ + interval * issued : end;
            wait_until(next);
        }
        report(total);
    }

private:
    void connect(std::size_t index) {
        Connection& each = connections_[index];
        if (each.descriptor >= 0) ::close(each.descriptor);
        each.descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(options_.port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(each.descriptor, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)) != 0) {
            std::perror("gateway_load: connect");
            std::exit(1);
        }
        const int on = 1;
        ::setsockopt(each.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = index;
        ::epoll_ctl(poll_, EPOLL_CTL_ADD, each.descriptor, &event);
        each.busy = false;
        each.reply.reset();
        idle_.push_back(index);
    }

    void send_waiting() {
        while (!waiting_.empty() && !idle_.empty()) {
            const std::size_t index = idle_.back();
            idle_.pop_back();
            Connection& each = connections_[index];
            each.due = waiting_.front();
            waiting_.pop_front();
            each.busy = true;
            const auto sent = ::send(each.descriptor, options_.request.data(),
                                     options_.request.size(), MSG_NOSIGNAL);
            if (sent != static_cast<ssize_t>(options_.request.size())) lose(index);
        }
    }

    void wait_until(Clock::time_point when) {
        const auto left = std::max(nanoseconds(0), nanoseconds(when - Clock::now()));
        timespec span{};
        span.tv_sec = left.count() / 1'000'000'000;
        span.tv_nsec = left.count() % 1'000'000'000;
        std::array<epoll_event, 64> events{};
        const int count =
            ::epoll_pwait2(poll_, events.data(), static_cast<int>(events.size()), &span, nullptr);
        for (int i = 0; i < count; ++i)
            receive(events[static_cast<std::size_t>(i)].data.u64);
    }

    void receive(std::size_t index) {
        Connection& each = connections_[index];
        std::array<char, 65536> buffer{};
        const auto count = ::recv(each.descriptor, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (count <= 0) {
            lose(index);
            return;
        }
        if (!each.reply.take({buffer.data(), static_cast<std::size_t>(count)})) return;
        const auto now = Clock::now();
        if (each.due - begun_ >= warm_up) took_.push_back((now - each.due).count());
        each.reply.ok() ? ++answered_ : ++failed_;
        each.reply.reset();
        each.busy = false;
        idle_.push_back(index);
        send_waiting();
    }

    void lose(std::size_t index) {
        if (connections_[index].busy) ++failed_;
        std::erase(idle_, index);
        connect(index);
    }

    double at(double share) const {
        if (took_.empty()) return 0;
        const auto last = static_cast<double>(took_.size() - 1);
        return static_cast<double>(took_[static_cast<std::size_t>(last * share)]) / 1000.0;
    }

    void report(std::uint64_t total) {
        std::sort(took_.begin(), took_.end());
        fmt::print(
            "{{\"due\":{},\"answered\":{},\"failed\":{},\"p50\":{:.1f},\"p90\":{:.1f},"
            "\"p99\":{:.1f},\"p999\":{:.1f},\"max\":{:.1f}}}\n",
            total, answered_, total - answered_, at(0.5), at(0.9), at(0.99), at(0.999), at(1.0));
    }

    Options options_;
    int poll_;
    std::vector<Connection> connections_;
    std::vector<std::size_t> idle_;
    std::deque<Clock::time_point> waiting_;  // due and not yet sent
    std::vector<std::int64_t> took_;         // nanoseconds
    Clock::time_point begun_;
    std::uint64_t answered_ = 0;
    std::uint64_t failed_ = 0;
};

std::optional<Options> read_options(int count, char** words) {
    if (count != 6) return std::nullopt;
    std::ifstream file(words[2], std::ios::binary);
    if (!file) return std::nullopt;
    Options options;
    options.port = static_cast<std::uint16_t>(std::strtoul(words[1], nullptr, 10));
    options.request.assign(std::istreambuf_iterator<char>(file), {});
    options.rate = std::strtod(words[3], nullptr);
    options.seconds = std::strtod(words[4], nullptr);
    options.connections = std::strtoul(words[5], nullptr, 10);
    if (options.request.empty() || options.rate <= 0 || options.connections == 0)
        return std::nullopt;
    return options;
}

}  // namespace

int main(int count, char** words) {
    const auto options = read_options(count, words);
    if (!options) {
        fmt::print(stderr, "usage: gateway_load PORT REQUEST_FILE RATE SECONDS CONNECTIONS\n");
        return 2;
    }
    ::prctl(PR_SET_TIMERSLACK, 1);  // nanosecond: wake up when the next request is due
    Load(*options).run();
    return 0;
}
