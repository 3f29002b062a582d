#include "store/internal/log_text.h"

#include <fmt/format.h>

#include "base/json.h"
#include "store/internal/object_text.h"

namespace molly::store::internal {
namespace {

std::string bytes_of(const json::object& object, std::string_view key) {
    return seal::from_hex(text_at(object, key)).value_or(std::string());
}

std::uint64_t number_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr) return 0;
    json::error_code error;
    const auto number = value->to_number<std::uint64_t>(error);
    return error ? 0 : number;
}

Link link_from(const json::object& object) {
    return {.sequence = number_of(object, "receipt"),
            .id = text_at(object, "id"),
            .body = text_at(object, "body"),
            .hash = bytes_of(object, "hash"),
            .previous = bytes_of(object, "previous")};
}

Head head_from(const json::object& object) {
    return {.sequence = number_of(object, "head"),
            .key_id = text_at(object, "signer"),
            .signature = bytes_of(object, "signature")};
}

/// What a line was before it was damaged: both of its marks cannot have been hit at once.
LineKind kind_of(std::string_view line) {
    if (line.starts_with("{\"head\":")) return LineKind::head;
    const bool receipt = line.starts_with("{\"receipt\":") ||
                         line.find("\",\"body\":\"") != std::string_view::npos ||
                         line.find("\",\"previous\":\"") != std::string_view::npos;
    return receipt ? LineKind::receipt : LineKind::head;
}

}  // namespace

std::string signer_line(std::string_view public_key) {
    std::string line;
    {
        ObjectText object(line);
        object.text("signer", seal::key_id(public_key));
        object.text("public_key", seal::to_hex(public_key));
    }
    return line;
}

std::string line_of(const Link& link) {
    std::string line;
    {
        ObjectText object(line);
        object.number("receipt", link.sequence);
        object.text("id", link.id);
        object.text("previous", seal::to_hex(link.previous));
        object.text("hash", seal::to_hex(link.hash));
        object.text("body", link.body);
    }
    return line;
}

std::string line_of(const Head& head) {
    std::string line;
    {
        ObjectText object(line);
        object.number("head", head.sequence);
        object.text("signer", head.key_id);
        object.text("signature", seal::to_hex(head.signature));
    }
    return line;
}

bool LogText::line(std::string_view line, bool cut) {
    if (any_) return entry(line, cut);
    any_ = true;
    log_ = line.starts_with("{\"signer\":");
    if (!log_) return false;
    const auto value = parse_json(line);
    const std::string public_key =
        value && value->is_object() ? bytes_of(value->get_object(), "public_key") : std::string();
    check_.signer(public_key);
    if (!cut && line == signer_line(public_key)) return true;
    return check_.damage(LineKind::receipt, cut);
}

bool LogText::entry(std::string_view line, bool cut) {
    const auto value = parse_json(line);
    if (cut || !value || !value->is_object()) return check_.damage(kind_of(line), cut);
    const json::object& object = value->get_object();
    if (object.contains("receipt")) {
        const Link link = link_from(object);
        return line == line_of(link) ? check_.link(link) : check_.damage(LineKind::receipt, false);
    }
    const Head head = head_from(object);
    return line == line_of(head) ? check_.head(head) : check_.damage(kind_of(line), false);
}

Result<AuditReport> LogText::finish(std::string_view name) {
    if (!any_) return fail(ErrorCode::corrupt, fmt::format("{} is empty", name));
    if (!log_) {
        return fail(
            Error(ErrorCode::corrupt,
                  fmt::format("{} is not a receipt log: its first line names no signer", name))
                .italian(fmt::format(
                    "{} non è un registro di ricevute: la prima riga non nomina un firmatario",
                    name)));
    }
    return check_.finish();
}

}  // namespace molly::store::internal
