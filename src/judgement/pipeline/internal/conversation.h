#pragma once
// By which name a conversation is known, so that its label sticks to it. Pure.
#include <string>

#include "domain/request.h"

namespace molly::pipeline {

/// The member, and within it the caller's own id, else a keyed hash of the first turns, so that the
/// name tells nothing of the text. Empty when the request is no conversation.
std::string conversation_of(const domain::Request& request, const std::string& key);

}  // namespace molly::pipeline
