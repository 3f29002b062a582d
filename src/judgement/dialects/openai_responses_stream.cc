// The typed events of the Responses API.
#include <algorithm>

#include "dialects/internal/faces.h"
#include "dialects/internal/openai.h"
#include "dialects/internal/parts.h"
#include "dialects/internal/responses.h"

namespace molly::dialects {
namespace {

using Kind = OutputItem::Kind;

class OpenAiResponseStream final : public StreamEncoder {
public:
    explicit OpenAiResponseStream(Envelope envelope) : envelope_(std::move(envelope)) {}

    std::string begin() override {
        std::string out;
        append_response_event(out, "response.created", nullptr, nullptr);
        append_response_event(out, "response.in_progress", nullptr, nullptr);
        return out;
    }

    std::string delta(const domain::Delta& delta) override {
        std::string out;
        if (!delta.reasoning.empty()) add_text(out, {.kind = Kind::reasoning}, delta.reasoning, {});
        if (!delta.text.empty() || !delta.logprobs.empty())
            add_text(out, {.kind = Kind::message}, delta.text, delta.logprobs);
        for (const domain::ToolCallDelta& call : delta.tool_calls)
            add_call(out, call);
        return out;
    }

    std::string end(const domain::Response& response) override {
        std::string out;
        if (items_.empty()) open(out, {.kind = Kind::message}, {}, {});
        for (std::size_t i = 0; i < items_.size(); ++i)
            close(out, i);
        const bool incomplete = incomplete_reason(response).has_value();
        append_response_event(out, incomplete ? "response.incomplete" : "response.completed",
                              &response, nullptr);
        return out;
    }

    std::string failed(const Error& error) override {
        std::string out;
        append_response_event(out, "response.failed", nullptr, &error);
        return out;
    }

    std::string keep_alive() override { return std::string(sse_keep_alive); }

private:
    struct Open {
        OutputItem item;
        std::string text;  // so far; the last event of an item repeats it
        std::vector<domain::TokenLogprob> logprobs;
        std::string call_id;
        std::string name;
        bool closed = false;
    };

    JsonText event(std::string& out, std::string_view type) {
        out += "event: ";
        out += type;
        out += "\ndata: ";
        JsonText json(out);
        json.open().field("type", type).field("sequence_number", sequence_++);
        return json;
    }

    void append_response_event(std::string& out, std::string_view type,
                               const domain::Response* response, const Error* error) {
        JsonText json = event(out, type);
        std::vector<OutputItem> items;
        for (const Open& open : items_)
            items.push_back(open.item);
        json.key("response");
        append_response(json, envelope_, response, items, error);
        json.close();
        out += "\n\n";
    }

    static ItemContent content_of(const Open& open, bool begun_only) {
        return {.text = open.text,
                .logprobs = &open.logprobs,
                .call_id = open.call_id,
                .name = open.name,
                .begun_only = begun_only};
    }

    void append_item_event(std::string& out, std::string_view type, std::size_t index,
                           bool begun_only) {
        JsonText json = event(out, type);
        json.field("output_index", index).key("item");
        append_item(json, envelope_, items_[index].item, content_of(items_[index], begun_only));
        json.close();
        out += "\n\n";
    }

    /// An event of an item's only text part, or of its arguments.
    JsonText item_event(std::string& out, std::string_view type, std::size_t index) {
        JsonText json = event(out, type);
        const OutputItem& item = items_[index].item;
        json.field("item_id", item_id(envelope_, item)).field("output_index", index);
        if (item.kind != Kind::call) json.field("content_index", 0);
        return json;
    }

    void append_part_event(std::string& out, std::string_view type, std::size_t index,
                           const ItemContent& content) {
        JsonText json = item_event(out, type, index);
        json.key("part");
        append_text_part(json, items_[index].item.kind, content);
        json.close();
        out += "\n\n";
    }

    /// The position of the item, which begins when it has not begun yet.
    std::size_t open(std::string& out, const OutputItem& item, std::string_view call_id,
                     std::string_view name) {
        const auto same = [&item](const Open& open) { return open.item == item; };
        const auto known = std::find_if(items_.begin(), items_.end(), same);
        if (known != items_.end()) return static_cast<std::size_t>(known - items_.begin());
        // Reasoning is over when something else begins; text and calls may go on side by side.
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (items_[i].item.kind == Kind::reasoning) close(out, i);
        }
        Open& begun = items_.emplace_back();
        begun.item = item;
        begun.call_id = call_id;
        begun.name = name;
        const std::size_t index = items_.size() - 1;
        append_item_event(out, "response.output_item.added", index, true);
        if (item.kind != Kind::call)
            append_part_event(out, "response.content_part.added", index, {});
        return index;
    }

    void add_text(std::string& out, const OutputItem& item, std::string_view text,
                  const std::vector<domain::TokenLogprob>& logprobs) {
        const std::size_t index = open(out, item, {}, {});
        Open& open = items_[index];
        open.text += text;
        open.logprobs.insert(open.logprobs.end(), logprobs.begin(), logprobs.end());
        const bool message = item.kind == Kind::message;
        JsonText json = item_event(
            out, message ? "response.output_text.delta" : "response.reasoning_text.delta", index);
        json.field("delta", text);
        if (message) {
            json.key("logprobs");
            append_token_array(json, logprobs);
        }
        json.close();
        out += "\n\n";
    }

    void add_call(std::string& out, const domain::ToolCallDelta& call) {
        const OutputItem item = {.kind = Kind::call, .call = call.index};
        const std::size_t index = open(out, item, call.id, call.name);
        if (call.arguments.empty()) return;
        items_[index].text += call.arguments;
        item_event(out, "response.function_call_arguments.delta", index)
            .field("delta", call.arguments)
            .close();
        out += "\n\n";
    }

    void close(std::string& out, std::size_t index) {
        Open& open = items_[index];
        if (std::exchange(open.closed, true)) return;
        if (open.item.kind == Kind::call) {
            item_event(out, "response.function_call_arguments.done", index)
                .field("name", open.name)
                .field("arguments", open.text)
                .close();
            out += "\n\n";
        } else {
            close_text(out, index);
        }
        append_item_event(out, "response.output_item.done", index, false);
    }

    void close_text(std::string& out, std::size_t index) {
        const Open& open = items_[index];
        const bool message = open.item.kind == Kind::message;
        JsonText json = item_event(
            out, message ? "response.output_text.done" : "response.reasoning_text.done", index);
        json.field("text", open.text);
        if (message) {
            json.key("logprobs");
            append_token_array(json, open.logprobs);
        }
        json.close();
        out += "\n\n";
        append_part_event(out, "response.content_part.done", index, content_of(open, false));
    }

    Envelope envelope_;
    std::vector<Open> items_;  // in the order of their beginning
    std::uint64_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<StreamEncoder> make_openai_response_stream(Envelope envelope) {
    return std::make_unique<OpenAiResponseStream>(std::move(envelope));
}

}  // namespace molly::dialects
