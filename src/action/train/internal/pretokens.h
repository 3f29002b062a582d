#pragma once
// Splits text into the words within which byte pairs may merge: llama.cpp's `qwen2` rule, with its
// own table of Unicode classes, so that both split alike. Digits stand alone, and an apostrophe
// begins a word (`l`, `'acqua`), which suits Italian. Pure.
#include <functional>
#include <string_view>

namespace molly::train {

/// Calls word(piece) for every piece of valid UTF-8 text, in order; together they are the text.
void split_words(std::string_view text, const std::function<void(std::string_view)>& word);

}  // namespace molly::train
