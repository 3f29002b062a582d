#include "engine/internal/compute_threads.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>

namespace molly::engine {
namespace {

// Of 100; about ten milliseconds of waiting awake, more than lies between two steps.
constexpr std::uint32_t polling = 10;

template <class Function>
Function* function_of_backend(const char* name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) return nullptr;
    ggml_backend_reg_t backend = ggml_backend_dev_backend_reg(device);
    return reinterpret_cast<Function*>(ggml_backend_reg_get_proc_address(backend, name));
}

}  // namespace

std::shared_ptr<ComputeThreads> ComputeThreads::make(std::uint32_t threads) {
    auto* create = function_of_backend<decltype(ggml_threadpool_new)>("ggml_threadpool_new");
    if (threads < 2 || create == nullptr) return nullptr;
    ggml_threadpool_params wanted = ggml_threadpool_params_default(static_cast<int>(threads));
    wanted.poll = polling;
    ggml_threadpool_t pool = create(&wanted);
    if (pool == nullptr) return nullptr;
    return std::shared_ptr<ComputeThreads>(new ComputeThreads(pool));
}

ComputeThreads::~ComputeThreads() {
    auto* destroy = function_of_backend<decltype(ggml_threadpool_free)>("ggml_threadpool_free");
    if (destroy != nullptr) destroy(pool_);
}

void ComputeThreads::attach(llama_context& context) const {
    llama_attach_threadpool(&context, pool_, nullptr);
}

}  // namespace molly::engine
