#pragma once
// The threads that compute forward passes, kept between them: to start one for each pass takes
// longer than a small model's layer, and longer still where the cores are busy.
#include <cstdint>
#include <memory>

#include <llama.h>

namespace molly::engine {

class ComputeThreads {
public:
    /// Null where one thread is all, or the backend keeps none. Contexts may share them as long as
    /// one computes at a time.
    static std::shared_ptr<ComputeThreads> make(std::uint32_t threads);
    ComputeThreads(const ComputeThreads&) = delete;
    ComputeThreads& operator=(const ComputeThreads&) = delete;
    ~ComputeThreads();

    void attach(llama_context& context) const;

private:
    explicit ComputeThreads(ggml_threadpool_t pool) : pool_(pool) {}
    ggml_threadpool_t pool_;
};

}  // namespace molly::engine
