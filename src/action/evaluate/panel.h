#pragma once
// One task to grade a model on: its questions, the right answers, and rows to show as examples.
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "domain/request.h"

namespace molly::evaluate {

/// A question with its right answer.
struct Item {
    std::vector<domain::Message> question;  ///< what is asked, its instructions first
    std::string answer;                     ///< the right one, as it was written
    json::value expected;                   ///< the same, read
    std::string slice;                      ///< the part of the panel it belongs to
};

struct Panel {
    std::string name;
    std::string title;
    std::string license;
    std::string schema;          ///< JSON Schema of an answer
    std::vector<Item> held_out;  ///< graded
    std::vector<Item> known;     ///< what a specialist may learn from; examples come from here
};

/// Reads a folder with task.json, train.jsonl and held_out.jsonl (tools/specialists). Errors:
/// not_found, invalid_request (names the file and line).
Result<Panel> read_panel(const std::filesystem::path& folder);

/// Every panel of a folder, by name; `only` names those wanted, empty: all. Errors: as read_panel;
/// not_found (there is none, or none of a wanted name).
Result<std::vector<Panel>> read_panels(const std::filesystem::path& folder,
                                       const std::vector<std::string>& only);

}  // namespace molly::evaluate
