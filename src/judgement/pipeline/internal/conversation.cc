#include "pipeline/internal/conversation.h"

#include "seal/seal.h"

namespace molly::pipeline {
namespace {

constexpr std::size_t hash_characters = 32;  // 128 bits, in hexadecimal

const domain::Message* first(const domain::Request& request, domain::Role role) noexcept {
    for (const domain::Message& message : request.messages) {
        if (message.role == role) return &message;
    }
    return nullptr;
}

void append_field(std::string& bytes, const std::string& field) {
    bytes += std::to_string(field.size());
    bytes += ':';
    bytes += field;
}

}  // namespace

std::string conversation_of(const domain::Request& request, const std::string& key) {
    const std::string& member =
        request.caller.member.empty() ? request.caller.key_id : request.caller.member;
    if (!request.extensions.conversation.empty())
        return member + "/" + request.extensions.conversation;
    const domain::Message* user = first(request, domain::Role::user);
    if (user == nullptr) return {};
    const domain::Message* system = first(request, domain::Role::system);
    std::string bytes;
    append_field(bytes, member);
    append_field(bytes, system == nullptr ? std::string() : text_of(*system));
    for (const domain::Part& part : user->parts)
        append_field(bytes, part.text.text());
    return member + "/" + seal::to_hex(seal::keyed_hash(key, bytes)).substr(0, hash_characters);
}

}  // namespace molly::pipeline
