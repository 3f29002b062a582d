#include "app/prefix_file.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "models/files.h"

namespace molly::app {
namespace {

namespace fs = std::filesystem;

// magic | bytes of the sealed head, 32 bits, lowest first | sealed head | sealed pieces
constexpr std::string_view magic = "molly prefix 1\n";
constexpr std::size_t length_bytes = 4;
constexpr std::size_t head_bytes_max = 64U << 20U;
constexpr std::uint64_t piece_bytes = 1U << 20U;

/// What sealing adds to any bytes.
std::size_t seal_bytes(const seal::Vault& vault) {
    return vault.seal({}, {}).size();
}

/// Pieces of another file, or in another order, do not open.
std::string context_of(std::string_view id, std::string_view part) {
    return fmt::format("prefix {} {}", id, part);
}

std::string context_of(std::string_view id, std::uint64_t piece) {
    return context_of(id, std::to_string(piece));
}

std::string text_of(const PrefixHead& head) {
    json::object out;
    out["layout"] = head.record.layout;
    out["key"] = head.record.key;
    out["adapters"] = head.record.adapters;
    out["member"] = head.record.member;
    out["class"] = to_string(head.record.sensitivity);
    out["bytes"] = head.record.bytes;
    out["model"] = head.model;
    out["model_hash"] = head.model_hash;
    out["made"] =
        std::chrono::duration_cast<std::chrono::seconds>(head.made.time_since_epoch()).count();
    json::array tokens(head.record.tokens.begin(), head.record.tokens.end());
    out["tokens"] = std::move(tokens);
    return to_text(json::value(std::move(out)));
}

std::unexpected<Error> damaged(const fs::path& file) {
    return fail(Error(ErrorCode::corrupt,
                      fmt::format("{} is damaged, or was sealed with another vault.key; `molly "
                                  "prefixes drop {}` removes it",
                                  file.string(), file.stem().string()))
                    .italian(fmt::format("{} è danneggiato, o sigillato con un'altra vault.key; "
                                         "`molly prefixes drop {}` lo rimuove",
                                         file.string(), file.stem().string())));
}

Result<PrefixHead> head_from(std::string_view text) {
    TRY(const json::value value, parse_json(text));
    PrefixHead head;
    // Whoever holds the key wrote it, so a fault here is one of ours or of a later version.
    try {
        const json::object& in = value.as_object();
        const auto word = [&in](const char* name) { return std::string(in.at(name).as_string()); };
        head.record.layout = word("layout");
        head.record.key = word("key");
        head.record.adapters = word("adapters");
        head.record.member = word("member");
        head.record.sensitivity = domain::sensitivity_from(word("class")).value();
        head.record.bytes = in.at("bytes").to_number<std::uint64_t>();
        head.model = word("model");
        head.model_hash = word("model_hash");
        head.made = WallTime(std::chrono::seconds(in.at("made").to_number<std::int64_t>()));
        for (const json::value& token : in.at("tokens").as_array())
            head.record.tokens.push_back(token.to_number<std::int32_t>());
    } catch (const std::exception&) {
        return fail(ErrorCode::corrupt, "the head says nothing that is understood");
    }
    return head;
}

/// An open file behind its head.
struct Opened {
    std::ifstream in;
    PrefixHead head;
};

Result<Opened> open_file(const fs::path& file, const seal::Vault& vault) {
    std::error_code fault;
    const std::uint64_t size = fs::file_size(file, fault);
    if (fault == std::errc::no_such_file_or_directory) {
        return fail(
            Error(ErrorCode::not_found,
                  fmt::format("there is no prefix {}; molly prefixes list", file.stem().string()))
                .italian(fmt::format("non c'è un prefisso {}; molly prefixes list",
                                     file.stem().string())));
    }
    Opened opened;
    opened.in.open(file, std::ios::binary);
    if (fault || !opened.in) return models::file_error(file, "read");
    std::string start(magic.size() + length_bytes, '\0');
    if (!opened.in.read(start.data(), static_cast<std::streamsize>(start.size())) ||
        !start.starts_with(magic))
        return damaged(file);
    std::size_t head_bytes = 0;
    for (std::size_t i = 0; i < length_bytes; ++i)
        head_bytes |= std::size_t{static_cast<unsigned char>(start[magic.size() + i])} << (8 * i);
    if (head_bytes > std::min<std::uint64_t>(size, head_bytes_max)) return damaged(file);
    std::string sealed(head_bytes, '\0');
    if (!opened.in.read(sealed.data(), static_cast<std::streamsize>(sealed.size())))
        return damaged(file);
    const std::string id = file.stem().string();
    const auto text = vault.open(sealed, context_of(id, "head"));
    if (!text) return damaged(file);
    auto head = head_from(*text);
    if (!head) return damaged(file);
    opened.head = *std::move(head);
    opened.head.record.id = id;
    const std::uint64_t bytes = opened.head.record.bytes;
    const std::uint64_t pieces = bytes / piece_bytes + (bytes % piece_bytes != 0 ? 1 : 0);
    if (size != start.size() + head_bytes + bytes + pieces * seal_bytes(vault))
        return damaged(file);
    return opened;
}

}  // namespace

fs::path prefix_path(const fs::path& folder, std::string_view id) {
    return folder / fmt::format("{}{}", id, prefix_extension);
}

std::uint64_t prefix_file_bytes(const engine::PrefixRecord& record) {
    constexpr std::uint64_t token_text = 8;
    constexpr std::uint64_t names = 1024;
    return record.bytes + record.bytes / 8192 + record.tokens.size() * token_text + names;
}

Result<void> write_prefix_file(const fs::path& folder, const PrefixHead& head,
                               std::string_view bytes, const seal::Vault& vault) {
    const std::string& id = head.record.id;
    const fs::path part = folder / fmt::format("{}.part", id);
    const auto write = [&]() -> Result<void> {
        TRY(const models::File file, models::open_file(part));
        const std::string sealed = vault.seal(text_of(head), context_of(id, "head"));
        std::string start(magic);
        for (std::size_t i = 0; i < length_bytes; ++i)
            start += static_cast<char>(sealed.size() >> (8 * i) & 0xFFU);
        TRY_DO(models::write_all(file, part, start + sealed));
        for (std::uint64_t at = 0, piece = 0; at < bytes.size(); at += piece_bytes, ++piece) {
            const std::string_view plain = bytes.substr(at, piece_bytes);
            TRY_DO(models::write_all(file, part, vault.seal(plain, context_of(id, piece))));
        }
        return {};
    };
    auto written = write();
    std::error_code fault;
    if (written) {
        fs::rename(part, prefix_path(folder, id), fault);
        if (fault) written = models::file_error(part, "name");
    }
    if (!written) fs::remove(part, fault);
    return written;
}

Result<PrefixHead> read_prefix_head(const fs::path& file, const seal::Vault& vault) {
    TRY(Opened opened, open_file(file, vault));
    return std::move(opened.head);
}

Result<std::string> read_prefix_bytes(const fs::path& file, const seal::Vault& vault) {
    TRY(Opened opened, open_file(file, vault));
    const engine::PrefixRecord& record = opened.head.record;
    std::string bytes;
    bytes.reserve(record.bytes);
    const std::size_t more = seal_bytes(vault);
    std::string sealed;
    for (std::uint64_t piece = 0; bytes.size() < record.bytes; ++piece) {
        sealed.resize(std::min(piece_bytes, record.bytes - bytes.size()) + more);
        if (!opened.in.read(sealed.data(), static_cast<std::streamsize>(sealed.size())))
            return damaged(file);
        const auto plain = vault.open(sealed, context_of(record.id, piece));
        if (!plain) return damaged(file);
        bytes += *plain;
    }
    return bytes;
}

}  // namespace molly::app
