#pragma once
// The objects of the Responses API, which its whole answers and its events share. Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dialects/dialects.h"
#include "dialects/internal/json_text.h"

namespace molly::dialects {

/// One item of the output.
struct OutputItem {
    enum class Kind : std::uint8_t { reasoning, message, call };
    Kind kind = Kind::message;
    std::uint32_t call = 0;  // call only: which one

    bool operator==(const OutputItem&) const = default;
};

/// What an item holds so far.
struct ItemContent {
    std::string_view text = {};
    const std::vector<domain::TokenLogprob>* logprobs = nullptr;
    std::string_view call_id = {};
    std::string_view name = {};
    bool begun_only = false;  // in progress: no content yet
};

std::string item_id(const Envelope& envelope, const OutputItem& item);
void append_item(JsonText& json, const Envelope& envelope, const OutputItem& item,
                 const ItemContent& content);
/// A part of text of a message or of reasoning.
void append_text_part(JsonText& json, OutputItem::Kind kind, const ItemContent& content);
/// `[{"token",...}]`.
void append_token_array(JsonText& json, const std::vector<domain::TokenLogprob>& logprobs);

/// The items of a whole answer in their usual order.
std::vector<OutputItem> items_of(const domain::Response& response);

/// The Response object. Without `response` it is in progress; with `error` it failed.
void append_response(JsonText& json, const Envelope& envelope, const domain::Response* response,
                     const std::vector<OutputItem>& items, const Error* error);

/// Whether the answer is not all that was asked for, and the name of the reason.
std::optional<std::string_view> incomplete_reason(const domain::Response& response);

}  // namespace molly::dialects
