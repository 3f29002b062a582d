#include "adapters/shipped.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adapters/internal/signing.h"
#include "models/files.h"

namespace molly::adapters {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view offered_name = "shipped";  // ids and hashes, one a line

std::set<std::string> read_lines(const fs::path& file) {
    std::set<std::string> out;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        out.insert(line);
    return out;
}

std::vector<fs::path> manifests_in(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ".json") out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
}

Result<Manifest> read_manifest(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return manifest_from(text);
}

}  // namespace

Result<Shipped> take_in_shipped(Registry& registry, const fs::path& data, const fs::path& folder,
                                const fs::path& base, std::string_view base_hash,
                                std::string_view public_key) {
    Shipped out;
    const fs::path list = data / "adapters" / offered_name;
    std::set<std::string> offered = read_lines(list);
    bool changed = false;
    for (const fs::path& file : manifests_in(folder)) {
        const auto manifest = read_manifest(file);
        if (!manifest) {
            out.refused.push_back(manifest.error());
            continue;
        }
        const std::string mark = manifest->id() + " " + manifest->hash;
        if (manifest->base.hash != base_hash || offered.contains(mark)) continue;
        const auto signed_right = check_signature(*manifest, public_key);
        if (!signed_right) {
            out.refused.push_back(signed_right.error());
            continue;
        }
        ImportOptions importing;
        importing.base = base;
        auto taken =
            registry.import(fs::path(file).replace_extension(".gguf"), *manifest, importing);
        if (!taken) {
            out.refused.push_back(taken.error());
            continue;
        }
        out.taken.push_back(*std::move(taken));
        offered.insert(mark);
        changed = true;
    }
    if (changed) TRY_DO(models::replace_file(list, fmt::format("{}\n", fmt::join(offered, "\n"))));
    return out;
}

}  // namespace molly::adapters
