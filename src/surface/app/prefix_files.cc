#include "app/prefix_files.h"

#include <algorithm>
#include <functional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace molly::app {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& folder, std::string_view extension) {
    std::vector<fs::path> files;
    std::error_code fault;
    for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault))
        if (at->path().extension() == extension) files.push_back(at->path());
    std::ranges::sort(files);
    return files;
}

}  // namespace

Result<std::shared_ptr<PrefixFiles>> PrefixFiles::open(Options options, seal::Vault vault,
                                                       Clock& clock) {
    TRY_DO(make_private_folder(options.folder));
    std::shared_ptr<PrefixFiles> files(
        new PrefixFiles(std::move(options), std::move(vault), clock));
    files->read_folder();
    files->expire();
    files->make_room(0);
    return files;
}

void PrefixFiles::read_folder() {
    std::error_code fault;
    for (const fs::path& file : files_in(options_.folder, ".part"))
        fs::remove(file, fault);
    for (const fs::path& file : files_in(options_.folder, prefix_extension)) {
        const std::string id = file.stem().string();
        const auto head = read_prefix_head(file, vault_);
        if (!head && head.error().code() == ErrorCode::corrupt) {
            log_event(LogLevel::warning, "prefix_damaged", {{"id", id}});
            fs::remove(file, fault);
        }
        if (!head) continue;
        Entry entry;
        entry.bytes = fs::file_size(file, fault);
        entry.used = fs::last_write_time(file, fault);
        entry.made = head->made;
        entry.sensitivity = head->record.sensitivity;
        entries_.emplace(id, entry);
    }
}

bool PrefixFiles::keeps(domain::Sensitivity sensitivity) const noexcept {
    const store::Retention& kept = options_.retention[static_cast<std::size_t>(sensitivity)];
    return kept.responses && kept.responses_for > std::chrono::days(0);
}

bool PrefixFiles::outlived(const Entry& entry) const {
    const store::Retention& kept = options_.retention[static_cast<std::size_t>(entry.sensitivity)];
    return !keeps(entry.sensitivity) || entry.made + kept.responses_for <= clock_.wall();
}

std::vector<engine::PrefixRecord> PrefixFiles::list() {
    const std::scoped_lock lock(mutex_);
    std::vector<engine::PrefixRecord> records;
    for (const auto& [id, entry] : entries_) {
        auto head = read_prefix_head(path(id), vault_);
        if (head && head->model_hash == options_.model_hash)
            records.push_back(std::move(head->record));
    }
    return records;
}

Result<std::string> PrefixFiles::load(const std::string& id) {
    {
        const std::scoped_lock lock(mutex_);
        const auto entry = entries_.find(id);
        if (entry == entries_.end() || outlived(entry->second))
            return fail(ErrorCode::not_found, "the prefix has gone; it is computed again");
    }
    auto bytes = read_prefix_bytes(path(id), vault_);
    if (!bytes && bytes.error().code() != ErrorCode::unavailable) drop(id);
    return bytes;
}

Result<std::string> PrefixFiles::save(const engine::PrefixRecord& record, std::string_view bytes) {
    if (!keeps(record.sensitivity)) {
        return fail(ErrorCode::denied,
                    fmt::format("retention.{} lets no content lie on disk (responses, "
                                "response_days)",
                                to_string(record.sensitivity)));
    }
    PrefixHead head{.record = record,
                    .model = options_.model,
                    .model_hash = options_.model_hash,
                    .made = std::chrono::floor<std::chrono::seconds>(clock_.wall())};
    head.record.id = seal::ordered_token(clock_.wall());
    head.record.bytes = bytes.size();
    const std::uint64_t takes = prefix_file_bytes(head.record);
    if (takes > options_.bytes_max) {
        return fail(
            ErrorCode::too_large,
            fmt::format("the prefix takes {} MiB and engine.prefix_disk_mib is {}; raise it",
                        (takes >> 20U) + 1, options_.bytes_max >> 20U));
    }
    expire();
    make_room(takes);
    TRY_DO(write_prefix_file(options_.folder, head, bytes, vault_));
    std::error_code fault;
    Entry entry;
    entry.bytes = fs::file_size(path(head.record.id), fault);
    entry.used = fs::last_write_time(path(head.record.id), fault);
    entry.made = head.made;
    entry.sensitivity = record.sensitivity;
    const std::scoped_lock lock(mutex_);
    entries_.emplace(head.record.id, entry);
    return head.record.id;
}

/// Removes what was not used for longest until there is room for so many bytes more.
void PrefixFiles::make_room(std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    std::uint64_t taken = 0;
    for (const auto& [id, entry] : entries_)
        taken += entry.bytes;
    std::error_code fault;
    while (!entries_.empty() && taken + bytes > options_.bytes_max) {
        const auto oldest = std::ranges::min_element(
            entries_, {}, [](const auto& each) { return each.second.used; });
        log_event(LogLevel::info, "prefix_dropped", {{"id", oldest->first}, {"why", "room"}});
        fs::remove(path(oldest->first), fault);
        taken -= oldest->second.bytes;
        entries_.erase(oldest);
    }
}

bool PrefixFiles::touch(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end()) return false;
    std::error_code fault;
    entry->second.used = fs::file_time_type::clock::now();
    fs::last_write_time(path(id), entry->second.used, fault);
    if (fault) entries_.erase(entry);
    return !fault;
}

void PrefixFiles::drop(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    std::error_code fault;
    fs::remove(path(id), fault);
    entries_.erase(id);
}

void PrefixFiles::expire() {
    const std::scoped_lock lock(mutex_);
    std::error_code fault;
    std::erase_if(entries_, [&](const auto& each) {
        if (!outlived(each.second)) return false;
        log_event(LogLevel::info, "prefix_dropped", {{"id", each.first}, {"why", "retention"}});
        fs::remove(path(each.first), fault);
        return true;
    });
}

fs::path prefix_folder(const Places& places) {
    return places.data / "prefixes";
}

std::vector<FoundPrefix> find_prefixes(const fs::path& folder, const seal::Vault& vault,
                                       bool whole) {
    std::vector<FoundPrefix> found;
    std::error_code fault;
    for (const fs::path& file : files_in(folder, prefix_extension)) {
        FoundPrefix one;
        one.id = file.stem().string();
        one.bytes = fs::file_size(file, fault);
        const auto used = fs::last_write_time(file, fault);
        one.used = std::chrono::time_point_cast<WallTime::duration>(
            fs::file_time_type::clock::to_sys(used));
        auto head = read_prefix_head(file, vault);
        one.damaged = !head || (whole && !read_prefix_bytes(file, vault));
        if (head) one.head = *std::move(head);
        found.push_back(std::move(one));
    }
    std::ranges::sort(found, std::greater{}, &FoundPrefix::used);
    return found;
}

}  // namespace molly::app
