#pragma once
// The threads of one trainer. Each lane works on its own sequences with its own workspace; they
// meet only where gradients are added, in the order of the lanes.
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace molly::train {

class Lanes {
public:
    explicit Lanes(std::size_t count);
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;
    Lanes(Lanes&&) = delete;
    Lanes& operator=(Lanes&&) = delete;
    ~Lanes();

    std::size_t count() const noexcept { return count_; }
    /// Runs work(lane) once for every lane and waits for all; lane 0 is the calling thread.
    void run(const std::function<void(std::size_t)>& work);
    /// Runs work(lane, from, to) over [0, items) in `count` even pieces.
    void split(std::size_t items,
               const std::function<void(std::size_t, std::size_t, std::size_t)>& work);

private:
    void serve(std::size_t lane);

    std::size_t count_;
    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void(std::size_t)>* work_ = nullptr;
    std::size_t round_ = 0;
    std::size_t busy_ = 0;
    bool closing_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace molly::train
