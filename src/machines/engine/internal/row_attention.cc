#include "engine/internal/row_attention.h"

#include <ggml-backend.h>
#include <llama-context.h>

namespace molly::engine {

bool attend_row_by_row(llama_context& context) {
    using SetReference = void (*)(ggml_backend_t, bool);
    ggml_backend_sched_t scheduler = context.get_sched();
    bool asked = false;
    for (int i = 0; i < ggml_backend_sched_get_n_backends(scheduler); ++i) {
        ggml_backend_t backend = ggml_backend_sched_get_backend(scheduler, i);
        ggml_backend_reg_t registry =
            ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
        void* found = ggml_backend_reg_get_proc_address(registry, "ggml_backend_cpu_set_use_ref");
        if (found == nullptr) continue;
        reinterpret_cast<SetReference>(found)(backend, true);
        asked = true;
    }
    return asked;
}

}  // namespace molly::engine
