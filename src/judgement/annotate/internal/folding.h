#pragma once
// What is left of a text when case, accents, blanks and punctuation do not count. Pure.
#include <string>
#include <string_view>

#include "domain/texts.h"

namespace molly::annotate {

/// Appends the letters and digits of `text`, in lower case, Latin letters without their accents;
/// escapes of JSON are undone, base64 is read. Bytes of other scripts stay as they are.
void fold(std::string_view text, domain::TextForm form, std::string& out);

}  // namespace molly::annotate
