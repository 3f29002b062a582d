#include "engine/internal/adapter_graph.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <ggml-backend.h>
#include <ggml.h>
#include <llama-adapter.h>
#include <llama-batch.h>
#include <llama-graph.h>

namespace molly::engine {
namespace {

thread_local AdapterGraph* current_graph = nullptr;

/// Rows that ggml's kernels for repacked weights compute at once. What is left over is computed row
/// by row: three rows cost more than a group, one or two less (benchmarks, engine).
constexpr std::int64_t group_rows = 4;

/// llama.cpp asks for more precision of some products once it has them, which only ggml's own
/// operation takes: anything else ends the process.
bool refined_later(llm_arch arch, std::string_view weight) {
    const bool fragile =
        arch == LLM_ARCH_GLM4 || arch == LLM_ARCH_GLM4_MOE || arch == LLM_ARCH_JAIS2;
    return (fragile &&
            (weight.ends_with(".attn_output.weight") || weight.ends_with(".ffn_down.weight"))) ||
           weight.ends_with(".ffn_gate_inp.weight");
}

bool repacked(const ggml_tensor& weight) {
    if (weight.buffer == nullptr) return false;
    const char* name = ggml_backend_buft_name(ggml_backend_buffer_get_type(weight.buffer));
    return std::string_view(name) == "CPU_REPACK";
}

}  // namespace

class AdapterGraph::Input final : public llm_graph_input_i {
public:
    explicit Input(AdapterGraph& graph) : graph_(graph), signature_(graph.signature_) {}

    void set_input(const llama_ubatch* ubatch) override { graph_.see(*ubatch, *this); }
    bool can_reuse(const llm_graph_params& /*params*/) override {
        return signature_ == graph_.signature_;
    }

    // Which place of the stack each row takes; null until some layer asks.
    ggml_tensor* of_all = nullptr;
    ggml_tensor* of_outputs = nullptr;

private:
    AdapterGraph& graph_;
    std::uint32_t signature_;
};

AdapterGraph::Scope::Scope(AdapterGraph& graph) : before_(std::exchange(current_graph, &graph)) {}
AdapterGraph::Scope::~Scope() {
    current_graph = before_;
}

bool AdapterGraph::set_step(std::vector<AdapterMix> by_sequence) {
    step_ = std::move(by_sequence);
    touched_.assign(layers_.size(), false);
    for (const AdapterMix& sequence : step_)
        for (const AdapterStep& step : sequence)
            for (std::uint32_t layer = 0; layer < layers_.size(); ++layer)
                if (step.adapter->pair(layer) != nullptr) touched_[layer] = true;
    if (stacked_ && !stack_.set_step(step_, layers_)) return false;
    const auto next = static_cast<std::uint32_t>(signatures_.size());
    signature_ = signatures_.emplace(std::pair(touched_, stack_.generation()), next).first->second;
    return true;
}

std::uint32_t AdapterGraph::note(const ggml_tensor& weight, bool usable) {
    constexpr auto none = UINT32_MAX;
    const auto known = by_name_.find(std::string_view(ggml_get_name(&weight)));
    if (known != by_name_.end()) {
        if (!frozen_ && !usable) layers_[known->second].usable = false;
        return known->second;
    }
    if (frozen_) return none;
    const auto layer = static_cast<std::uint32_t>(layers_.size());
    layers_.push_back({.name = ggml_get_name(&weight),
                       .in = static_cast<std::uint64_t>(weight.ne[0]),
                       .out = static_cast<std::uint64_t>(weight.ne[1]),
                       .usable = usable});
    by_name_.emplace(layers_.back().name, layer);
    stack_.note(weight);
    by_layer_.resize(layers_.size() * 2, nullptr);
    return layer;
}

/// A cache's tensors are the roots of what the graph writes into them.
void AdapterGraph::note_cache(const llm_graph_context& context) {
    for (int i = 0; i < ggml_graph_n_nodes(context.gf); ++i) {
        ggml_tensor* root = ggml_graph_node(context.gf, i)->view_src;
        if (root == nullptr || !std::string_view(ggml_get_name(root)).starts_with("cache_"))
            continue;
        if (std::ranges::find(cache_tensors_, root) == cache_tensors_.end())
            cache_tensors_.push_back(root);
    }
}

AdapterGraph::Operation* AdapterGraph::operation(std::uint32_t layer, bool outputs) {
    Operation*& found = by_layer_[std::size_t{layer} * 2 + (outputs ? 1 : 0)];
    if (found == nullptr) {
        operations_.push_back({.graph = this, .layer = layer, .outputs = outputs});
        found = &operations_.back();
    }
    return found;
}

ggml_tensor* AdapterGraph::multiply(const llm_graph_context& context, ggml_tensor* weight,
                                    ggml_tensor* input) {
    if (refined_later(context.arch, ggml_get_name(weight)))
        return ggml_mul_mat(context.ctx0, weight, input);
    if (ggml_tensor* ours = products_.multiply(context.ctx0, *weight, *input)) return ours;
    const std::int64_t rows = input->ne[1];
    const std::int64_t missing = (group_rows - rows % group_rows) % group_rows;
    const bool quicker = missing == 1 && repacked(*weight);
    if (missing == 0 || !(quicker || whole_groups_) || input->type != GGML_TYPE_F32 ||
        !ggml_is_matrix(input) || ggml_n_dims(weight) != 2)
        return ggml_mul_mat(context.ctx0, weight, input);
    ggml_tensor* padded = ggml_pad(context.ctx0, input, 0, static_cast<int>(missing), 0, 0);
    ggml_tensor* product = ggml_mul_mat(context.ctx0, weight, padded);
    return ggml_view_2d(context.ctx0, product, product->ne[0], rows, product->nb[1], 0);
}

ggml_tensor* AdapterGraph::add_delta(const llm_graph_context& context, ggml_tensor* weight,
                                     ggml_tensor* input, ggml_tensor* output) {
    if (!frozen_) note_cache(context);
    Input* joined = nullptr;
    for (const llm_graph_input_ptr& one : context.res->inputs)
        if (auto* input_rows = dynamic_cast<Input*>(one.get())) joined = input_rows;
    if (joined == nullptr)
        joined = static_cast<Input*>(context.res->add_input(std::make_unique<Input>(*this)));
    const std::int64_t rows = input->ne[1];
    const bool usable = !refined_later(context.arch, ggml_get_name(weight)) &&
                        ggml_n_dims(weight) == 2 && input->type == GGML_TYPE_F32 &&
                        output->type == GGML_TYPE_F32 && ggml_is_matrix(input) &&
                        input->nb[0] == sizeof(float) && output->nb[0] == sizeof(float) &&
                        (rows == context.n_tokens || rows == context.n_outputs);
    const std::uint32_t layer = note(*weight, usable);
    if (!usable || layer >= touched_.size() || !touched_[layer]) return output;
    if (stacked_) return add_stacked(context, layer, input, output, *joined);
    ggml_tensor* arguments[] = {input};
    return ggml_custom_inplace(context.ctx0, output, arguments, 1, compute, GGML_N_TASKS_MAX,
                               operation(layer, rows != context.n_tokens));
}

ggml_tensor* AdapterGraph::add_stacked(const llm_graph_context& context, std::uint32_t layer,
                                       ggml_tensor* input, ggml_tensor* output, Input& rows) const {
    ggml_tensor*& choice = input->ne[1] == context.n_tokens ? rows.of_all : rows.of_outputs;
    if (choice == nullptr) choice = AdapterStack::new_choice(context.ctx0, input->ne[1]);
    return stack_.add_delta(context.ctx0, layer, input, output, choice);
}

void AdapterGraph::see(const llama_ubatch& batch, Input& rows) {
    std::vector<std::uint32_t> sequences;
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t token = 0; token < batch.n_tokens; ++token) {
        const auto sequence = static_cast<std::uint32_t>(batch.seq_id[token][0]);
        sequences.push_back(sequence);
        if (batch.output != nullptr && batch.output[token] != 0) wanted.push_back(sequence);
    }
    if (rows.of_all != nullptr) stack_.choose(sequences, rows.of_all);
    if (rows.of_outputs != nullptr) stack_.choose(wanted, rows.of_outputs);
    sort(sequences, all_);
    sort(wanted, outputs_);
}

void AdapterGraph::sort(const std::vector<std::uint32_t>& sequences, Rows& rows) const {
    rows = {};
    // By adapter, in the order of their hashes: what each sequence wants of it.
    std::map<std::pair<std::string_view, const HotAdapter*>, std::vector<const AdapterStep*>> steps;
    for (std::size_t sequence = 0; sequence < step_.size(); ++sequence) {
        for (const AdapterStep& step : step_[sequence]) {
            auto& wanted = steps[{step.hash, step.adapter}];
            wanted.resize(step_.size(), nullptr);
            wanted[sequence] = &step;
        }
    }
    for (const auto& [adapter, wanted] : steps) {
        const std::size_t begin = rows.rows.size();
        for (std::uint32_t row = 0; row < sequences.size(); ++row) {
            const std::uint32_t sequence = sequences[row];
            if (sequence >= step_.size() || wanted[sequence] == nullptr) continue;
            rows.rows.push_back(row);
            rows.scales.push_back(wanted[sequence]->scale);
        }
        if (rows.rows.size() > begin)
            rows.segments.push_back({adapter.second, begin, rows.rows.size()});
    }
    for (std::uint32_t row = 0; row < sequences.size(); ++row)
        if (sequences[row] < step_.size() && !step_[sequences[row]].empty())
            rows.adapted.push_back(row);
}

void AdapterGraph::compute(ggml_tensor* output, int thread, int threads, void* operation) {
    const auto& asked = *static_cast<const Operation*>(operation);
    asked.graph->run(asked, *output, static_cast<std::uint32_t>(thread),
                     static_cast<std::uint32_t>(threads));
}

/// Threads share the rows, so that each row is one thread's; when there are fewer rows than
/// threads, they share the outputs.
void AdapterGraph::run(const Operation& operation, ggml_tensor& output, std::uint32_t thread,
                       std::uint32_t threads) const {
    const Rows& rows = operation.outputs ? outputs_ : all_;
    const ggml_tensor& input = *output.src[1];
    const LoraRows matrix{.x = static_cast<const float*>(input.data),
                          .x_stride = input.nb[1] / sizeof(float),
                          .y = static_cast<float*>(output.data),
                          .y_stride = output.nb[1] / sizeof(float)};
    const std::size_t count = rows.adapted.size();
    const bool by_rows = count >= threads;
    const auto bound = [&](std::size_t part) {
        const std::size_t at = count * part / threads;
        return at < count ? rows.adapted[at] : UINT32_MAX;
    };
    const std::uint32_t low = by_rows ? bound(thread) : 0;
    const std::uint32_t high = by_rows ? bound(std::size_t{thread} + 1) : UINT32_MAX;
    for (const Rows::Segment& segment : rows.segments) {
        const auto first = rows.rows.begin() + static_cast<std::ptrdiff_t>(segment.begin);
        const auto last = rows.rows.begin() + static_cast<std::ptrdiff_t>(segment.end);
        const auto begin =
            static_cast<std::size_t>(std::lower_bound(first, last, low) - rows.rows.begin());
        const auto end =
            static_cast<std::size_t>(std::lower_bound(first, last, high) - rows.rows.begin());
        const LoraPair* pair = segment.adapter->pair(operation.layer);
        if (begin >= end || pair == nullptr) continue;
        const std::uint32_t blocks = pair->out / lora_lanes;
        const std::uint32_t from = by_rows ? 0 : blocks * thread / threads * lora_lanes;
        const std::uint32_t to = by_rows ? pair->out : blocks * (thread + 1) / threads * lora_lanes;
        if (from == to) continue;
        kernel_.run({.pair = pair,
                     .rows = std::span(rows.rows).subspan(begin, end - begin),
                     .scales = std::span(rows.scales).subspan(begin, end - begin),
                     .out_begin = from,
                     .out_end = to},
                    matrix);
    }
}

}  // namespace molly::engine

/// Takes the place of llama.cpp's own, through the dynamic linker. What it does without a scope is
/// what the original does.
ggml_tensor* llm_graph_context::build_lora_mm(ggml_tensor* w, ggml_tensor* cur,
                                              ggml_tensor* w_s) const {
    molly::engine::AdapterGraph* ours = molly::engine::current_graph;
    ggml_tensor* output =
        ours != nullptr ? ours->multiply(*this, w, cur) : ggml_mul_mat(ctx0, w, cur);
    if (w_s != nullptr) output = ggml_mul(ctx0, output, w_s);
    for (const auto& [lora, adapter_scale] : *loras) {
        llama_adapter_lora_weight* pair = lora->get_weight(w);
        if (pair == nullptr) continue;
        ggml_tensor* delta = ggml_mul_mat(ctx0, pair->b, ggml_mul_mat(ctx0, pair->a, cur));
        delta = ggml_scale(ctx0, delta, pair->get_scale(lora->alpha, adapter_scale));
        output = ggml_add(ctx0, output, delta);
    }
    return ours != nullptr ? ours->add_delta(*this, w, cur, output) : output;
}
