#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/json.h"
#include "seal/seal.h"
#include "store/audit.h"
#include "store/internal/object_text.h"
#include "store/trace_text.h"

namespace molly::store {
namespace {

using internal::ObjectText;
using internal::text_at;

// 5 bytes of number, 18 of hash and 2 of check are 200 bits: forty letters without padding.
constexpr std::size_t number_bytes = 5;
constexpr std::size_t hash_bytes = 18;
constexpr std::size_t check_bytes = 2;
constexpr std::size_t group_letters = 5;

std::string check_of(std::string_view bytes) {
    const seal::Hash hash = seal::sha256("molly head code 1\n" + std::string(bytes));
    return {hash.begin(), hash.begin() + check_bytes};
}

std::unexpected<Error> not_a_code() {
    return fail(Error(ErrorCode::invalid_request,
                      "this is no head: neither a file, nor 64 hexadecimal digits, nor a code of "
                      "eight groups (or a letter of the code is wrong)")
                    .param("--head")
                    .italian("questa non è una testa: né un file, né 64 cifre esadecimali, né un "
                             "codice di otto gruppi (o una lettera del codice è sbagliata)"));
}

std::unexpected<Error> bad_line(std::size_t number) {
    return fail(
        Error(ErrorCode::invalid_request,
              fmt::format("line {} of the witness file is not a head as Molly writes it", number))
            .italian(fmt::format(
                "la riga {} del file testimone non è una testa come la scrive Molly", number)));
}

std::optional<WitnessedHead> head_from(std::string_view line) {
    const auto value = parse_json(line);
    if (!value || !value->is_object()) return std::nullopt;
    const json::object& object = value->get_object();
    const json::value* number = object.if_contains("head");
    json::error_code error;
    WitnessedHead head;
    if (number != nullptr) head.sequence = number->to_number<std::uint64_t>(error);
    auto hash = seal::from_hex(text_at(object, "hash"));
    auto signature = seal::from_hex(text_at(object, "signature"));
    if (error || head.sequence == 0 || !hash || hash->size() != seal::Hash().size() || !signature)
        return std::nullopt;
    head.hash = *std::move(hash);
    head.key_id = text_at(object, "signer");
    head.signature = *std::move(signature);
    return head;
}

}  // namespace

std::string head_code(std::uint64_t sequence, std::string_view hash) {
    if (sequence == 0 || hash.size() < hash_bytes) return {};
    std::string bytes(number_bytes, '\0');
    for (std::size_t i = number_bytes; i-- > 0; sequence >>= 8U)
        bytes[i] = static_cast<char>(sequence & 0xFFU);
    bytes += hash.substr(0, hash_bytes);
    bytes += check_of(bytes);
    const std::string letters = seal::to_base32(bytes);
    std::string code;
    for (std::size_t i = 0; i < letters.size(); i += group_letters)
        code += (i == 0 ? "" : "-") + letters.substr(i, group_letters);
    return code;
}

Result<WitnessedHead> head_from_code(std::string_view code) {
    const auto bytes = seal::from_base32(code);
    if (!bytes || bytes->size() != number_bytes + hash_bytes + check_bytes) return not_a_code();
    const std::string_view all = *bytes;
    const std::string_view content = all.substr(0, number_bytes + hash_bytes);
    if (check_of(content) != all.substr(content.size())) return not_a_code();
    WitnessedHead head;
    for (const char c : content.substr(0, number_bytes))
        head.sequence = (head.sequence << 8U) | static_cast<unsigned char>(c);
    head.hash = content.substr(number_bytes);
    if (head.sequence == 0) return not_a_code();
    return head;
}

std::string witness_line(const WitnessedHead& head, WallTime time) {
    std::string line;
    {
        ObjectText object(line);
        object.number("head", head.sequence);
        object.text("hash", seal::to_hex(head.hash));
        object.text("signer", head.key_id);
        object.text("signature", seal::to_hex(head.signature));
        object.text("time", to_text(time));
        object.text("code", head_code(head.sequence, head.hash));
    }
    return line + "\n";
}

Result<std::vector<WitnessedHead>> witness_from(std::string_view text) {
    std::vector<WitnessedHead> heads;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) break;  // the medium went away within a line
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (!line.ends_with('}')) continue;  // the same, and it came back
        auto head = head_from(line);
        if (!head) return bad_line(number);
        heads.push_back(*std::move(head));
    }
    return heads;
}

Result<void> append_witness(const std::filesystem::path& file, const WitnessedHead& head,
                            WallTime time) {
    const std::string line = witness_line(head, time);
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool written = descriptor >= 0;
    if (written) {
        // What an interrupted write left must not swallow this line.
        const off_t size = ::lseek(descriptor, 0, SEEK_END);
        char last = '\n';
        if (size > 0) written = ::pread(descriptor, &last, 1, size - 1) == 1;
        const std::string whole = (last == '\n' ? "" : "\n") + line;
        written = written && ::write(descriptor, whole.data(), whole.size()) ==
                                 static_cast<ssize_t>(whole.size());
        written = written && ::fdatasync(descriptor) == 0;
    }
    const std::string cause = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    if (written) return {};
    return fail(Error(ErrorCode::unavailable,
                      fmt::format("cannot write the witness file {}: {}", file.string(), cause))
                    .italian(fmt::format("impossibile scrivere il file testimone {}: {}",
                                         file.string(), cause)));
}

Result<std::vector<WitnessedHead>> read_witness(const std::string& word) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(word, ignored)) {
        std::ifstream stream(word, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        if (stream.bad() || !stream.is_open())
            return fail(ErrorCode::unavailable, fmt::format("cannot read {}", word));
        return witness_from(text);
    }
    std::vector<WitnessedHead> heads(1);
    const auto hash = seal::from_hex(word);
    if (hash && hash->size() == seal::Hash().size()) {
        heads.front().hash = *hash;
        return heads;
    }
    TRY(heads.front(), head_from_code(word));
    return heads;
}

}  // namespace molly::store
