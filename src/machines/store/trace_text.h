#pragma once
// Traces and labels as JSON text, and back. Pure; safe from any thread.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/label.h"
#include "domain/trace.h"

namespace molly::store {

/// A trace as compact JSON; members with their default value are left out, times are microseconds.
std::string to_text(const domain::Trace& trace);
/// Appends the same.
void append_trace(std::string& out, const domain::Trace& trace);
/// Errors: corrupt.
Result<domain::Trace> trace_from(std::string_view text);

/// A label as JSON: `{"class":"private","residency":["EU"],"origins":["kb"]}`; no `residency`
/// means everywhere.
std::string to_text(const domain::Label& label);
/// Errors: corrupt.
Result<domain::Label> label_from(std::string_view text);

/// `2026-11-30T07:45:50.123456Z`.
std::string to_text(WallTime time);

}  // namespace molly::store
