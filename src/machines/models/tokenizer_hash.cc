#include <algorithm>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "models/gguf.h"
#include "seal/seal.h"

namespace molly::models {

Result<std::string> tokenizer_hash(const std::filesystem::path& file, const Gguf& gguf) {
    constexpr std::string_view prefix = "tokenizer.ggml.";
    constexpr std::uint64_t block_bytes = 1U << 20U;
    std::ifstream stream(file, std::ios::binary);
    seal::HashStream hash;
    bool any = false;
    std::vector<char> block(block_bytes);
    for (auto at = gguf.places.lower_bound(prefix);
         at != gguf.places.end() && at->first.starts_with(prefix); ++at) {
        any = true;
        const auto& [key, place] = *at;
        // The length keeps a key apart from the value behind it.
        hash.add(fmt::format("{} {}\n", key, place.end - place.begin));
        stream.seekg(static_cast<std::streamoff>(place.begin));
        for (std::uint64_t left = place.end - place.begin; left > 0;) {
            const std::uint64_t count = std::min(left, block_bytes);
            stream.read(block.data(), static_cast<std::streamsize>(count));
            if (!stream) {
                return fail(ErrorCode::corrupt,
                            fmt::format("{} ends inside its vocabulary; fetch the file again",
                                        file.string()));
            }
            hash.add({block.data(), static_cast<std::size_t>(count)});
            left -= count;
        }
    }
    return any ? seal::to_hex(hash.take()) : std::string();
}

}  // namespace molly::models
