#include "adapters/registry.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adapters/internal/base_model.h"
#include "adapters/internal/lora_file.h"
#include "adapters/internal/peft.h"
#include "adapters/internal/shelf.h"
#include "adapters/internal/signing.h"
#include "models/catalogue.h"
#include "models/files.h"
#include "seal/seal.h"

namespace molly::adapters {
namespace fs = std::filesystem;

struct Registry::Known {
    fs::file_time_type changed;
    std::shared_ptr<const Shelf> shelf;
};

namespace {

constexpr std::size_t names_shown_max = 8;  // in an error

constexpr const char* changes_name = "changes";

/// Held while the registry changes, so that another process cannot undo the change. At its end
/// `changes` is a byte longer, whatever came of it.
class Change {
public:
    Change(models::File lock, const fs::path& folder)
        : lock_(std::move(lock)), changes_(folder / changes_name) {}
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    Change(Change&&) = delete;
    Change& operator=(Change&&) = delete;
    ~Change() { std::ofstream(changes_, std::ios::app | std::ios::binary).put('.'); }

    static Result<std::unique_ptr<const Change>> begin(const fs::path& folder) {
        TRY(models::File file, models::open_file(folder / "lock"));
        if (!models::lock(file, true)) return models::file_error(folder, "lock");
        return std::make_unique<const Change>(std::move(file), folder);
    }

private:
    models::File lock_;
    fs::path changes_;
};

Result<void> check_name(const std::string& name) {
    if (models::check_name(name)) return {};
    return fail(Error(ErrorCode::invalid_request,
                      "an adapter's name has letters, digits, `.`, `_` and `-`, does not begin "
                      "with `.`, and has at most 128 characters; give one with --name")
                    .italian("il nome di un adattatore ha lettere, cifre, `.`, `_` e `-`, non "
                             "inizia con `.` e ha al più 128 caratteri; indicarne uno con --name")
                    .param("name"));
}

Error unknown(std::string_view id, const std::vector<std::string>& there) {
    std::string some = fmt::format(
        "{}", fmt::join(there.begin(),
                        there.begin() +
                            static_cast<std::ptrdiff_t>(std::min(there.size(), names_shown_max)),
                        ", "));
    if (there.size() > names_shown_max) some += ", ...";
    const bool none = there.empty();
    return Error(ErrorCode::not_found,
                 fmt::format("there is no adapter {}; there are: {}", id.substr(0, 200),
                             none ? "none yet (molly adapters import)" : some))
        .reason("adapter_not_found")
        .param("model")
        .italian(fmt::format("l'adattatore {} non esiste; ci sono: {}", id.substr(0, 200),
                             none ? "ancora nessuno (molly adapters import)" : some));
}

/// A private copy: the caller's file may change later, the registry's never does.
Result<void> copy_weights(const fs::path& file, const fs::path& target) {
    std::error_code error;
    if (fs::exists(target, error)) return {};
    const fs::path part = target.string() + ".part";
    fs::copy_file(file, part, fs::copy_options::overwrite_existing, error);
    if (!error) {
        TRY(const models::File copied, models::open_file(part));
        if (!models::flush(copied)) return models::file_error(part, "write");
        fs::permissions(part, fs::perms::owner_read, error);
        if (!error) fs::rename(part, target, error);
    }
    if (!error) return {};
    errno = error.value();
    return models::file_error(target, "write");
}

Result<void> agree(std::string_view what, double said, double found) {
    if (said == 0 || said == found) return {};
    return fail(Error(ErrorCode::conflict,
                      fmt::format("the manifest says {} {} and the file has {}; mend the manifest",
                                  what, said, found))
                    .reason("adapter_mismatch")
                    .italian(fmt::format("il manifesto dice {} {} e il file ha {}; correggere il "
                                         "manifesto",
                                         what, said, found)));
}

/// Fills what the file itself says; what the manifest said already must be the same.
Result<void> complete(Manifest& manifest, const LoraFile& lora, const fs::path& file,
                      const ImportOptions& options) {
    Manifest found;
    lora.describe(found);
    TRY_DO(agree("rank", manifest.rank, found.rank));
    TRY_DO(agree("alpha", manifest.alpha, found.alpha));
    manifest.rank = found.rank;
    manifest.alpha = found.alpha;
    manifest.tensors = found.tensors;
    manifest.modules = std::move(found.modules);
    std::error_code ignored;
    manifest.bytes = fs::file_size(file, ignored);
    TRY(const seal::Hash hash, seal::sha256_file(file, [&](std::uint64_t done) {
            if (options.progress) options.progress(done, manifest.bytes);
        }));
    const std::string hex = seal::to_hex(hash);
    if (!manifest.hash.empty() && manifest.hash != hex) {
        return fail(Error(ErrorCode::corrupt,
                          "the file's SHA-256 is not the manifest's: it changed after the manifest "
                          "was written; fetch both again")
                        .italian("lo SHA-256 del file non è quello del manifesto: è cambiato dopo; "
                                 "riprendere entrambi"));
    }
    manifest.hash = hex;
    return {};
}

}  // namespace

Registry::Registry(fs::path data) : data_(std::move(data)), folder_(data_ / "adapters") {}
Registry::~Registry() = default;

Result<std::unique_ptr<Registry>> Registry::open(const fs::path& data) {
    std::unique_ptr<Registry> registry(new Registry(data));
    std::error_code error;
    for (const char* part : {"names", "weights"}) {
        if (!error) fs::create_directories(registry->folder_ / part, error);
    }
    if (error) {
        return fail(ErrorCode::unavailable,
                    fmt::format("cannot make {}: {}", registry->folder_.string(), error.message()));
    }
    return registry;
}

Result<std::shared_ptr<const Shelf>> Registry::shelf(const std::string& name) const {
    using namespace std::chrono_literals;
    const fs::path folder = folder_ / "names" / name;
    std::error_code error;
    const auto changed =
        models::check_name(name) ? fs::last_write_time(folder, error) : fs::file_time_type::min();
    if (error || changed == fs::file_time_type::min()) return fail(unknown(name, names()));
    {
        const std::scoped_lock lock(mutex_);
        const auto known = known_.find(name);
        if (known != known_.end() && known->second.changed == changed) return known->second.shelf;
    }
    TRY(Shelf read, Shelf::read(folder));
    auto shelf = std::make_shared<const Shelf>(std::move(read));
    // Within one tick of the clock a second change would not show in the folder's time.
    const bool settled = fs::file_time_type::clock::now() - changed > 100ms;
    const std::scoped_lock lock(mutex_);
    if (settled) known_.insert_or_assign(name, Known{changed, shelf});
    return shelf;
}

Result<Shelf> Registry::shelf_to_change(const std::string& name) const {
    TRY(const auto read, shelf(name));
    return *read;
}

void Registry::forget(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    known_.erase(name);
}

std::vector<std::string> Registry::names() const {
    std::vector<std::string> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_ / "names", error))
        out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
}

Result<void> Registry::sign(Manifest& manifest) const {
    TRY(const auto key, seal::SigningKey::load_or_create(folder_ / "signing.key"));
    manifest.signature.public_key = seal::to_base64(key.public_key());
    manifest.signature.value = seal::to_base64(key.sign(to_text(manifest, false)));
    return {};
}

Result<Manifest> Registry::import(const fs::path& file, Manifest manifest,
                                  const ImportOptions& options) {
    TRY_DO(check_name(manifest.name));
    TRY_DO(check_version(manifest.version));
    TRY(const BaseModel base, find_base(data_, options.base, manifest.base));
    manifest.base = base.base;
    std::error_code ignored;
    fs::path weights = file;
    std::optional<TemporaryFile> converted;
    if (fs::is_directory(file, ignored)) {
        converted.emplace(folder_ / "weights" / (seal::random_token(12) + ".peft"));
        TRY_DO(convert_peft(file, base.gguf, converted->path()));
        weights = converted->path();
        if (manifest.training.method.empty()) manifest.training.method = "peft";
    }
    TRY(const LoraFile lora, read_lora(weights));
    TRY_DO(check_fit(lora, base.gguf));
    TRY_DO(check_numbers(weights, lora));
    TRY_DO(complete(manifest, lora, weights, options));
    return enter(weights, std::move(manifest), options.promote);
}

Result<Manifest> Registry::enter(const fs::path& file, Manifest manifest, bool promote) {
    TRY(const auto change, Change::begin(folder_));
    TRY_DO(sign(manifest));
    const fs::path folder = folder_ / "names" / manifest.name;
    std::error_code ignored;
    Shelf shelf(folder);
    if (fs::exists(folder, ignored)) {
        forget(manifest.name);
        TRY(shelf, shelf_to_change(manifest.name));
    }
    const auto known = shelf.versions().find(manifest.version);
    if (known != shelf.versions().end() &&
        (known->second.hash != manifest.hash || known->second.base.hash != manifest.base.hash)) {
        return fail(Error(ErrorCode::conflict,
                          fmt::format("{} exists already with other weights, and a version never "
                                      "changes; give this one another version (--version)",
                                      manifest.id()))
                        .italian(fmt::format("{} esiste già con altri pesi, e una versione non "
                                             "cambia mai; dare a questa un'altra versione "
                                             "(--version)",
                                             manifest.id())));
    }
    TRY_DO(copy_weights(file, file_of(manifest)));
    if (known == shelf.versions().end()) TRY_DO(shelf.put(manifest));
    if (promote || shelf.current(manifest.base.hash) == nullptr)
        TRY_DO(shelf.promote(manifest.version));
    forget(manifest.name);
    return shelf.versions().at(manifest.version);
}

Result<Manifest> Registry::find(std::string_view id, std::string_view base_hash) const {
    const auto [name, version] = split_id(id);
    TRY(const auto shelf, this->shelf(name));
    const Manifest* found = nullptr;
    if (version.empty()) {
        found = shelf->current(base_hash);
        if (found == nullptr) found = shelf->current({});
    } else if (const auto at = shelf->versions().find(version); at != shelf->versions().end()) {
        found = &at->second;
    }
    if (found == nullptr) {
        std::vector<std::string> there;
        for (const auto& entry : shelf->versions())
            there.push_back(entry.second.id());
        return fail(unknown(id, there));
    }
    if (!base_hash.empty() && found->base.hash != base_hash) {
        return fail(Error(ErrorCode::conflict,
                          fmt::format("the adapter {} was made for another base ({}); train it on "
                                      "this one, or serve that one",
                                      found->id(), found->base.name))
                        .reason("adapter_mismatch")
                        .italian(fmt::format("l'adattatore {} è per un altro modello ({}); "
                                             "allenarlo su questo, o servire quello",
                                             found->id(), found->base.name)));
    }
    return *found;
}

Result<std::vector<Entry>> Registry::list(std::string_view name) const {
    std::vector<Entry> out;
    const auto wanted = name.empty() ? names() : std::vector<std::string>{std::string(name)};
    for (const std::string& one : wanted) {
        TRY(const auto shelf, this->shelf(one));
        for (const auto& [version, manifest] : shelf->versions()) {
            const Manifest* current = shelf->current(manifest.base.hash);
            out.push_back({.manifest = manifest,
                           .current = current != nullptr && current->version == version,
                           .pinned = shelf->pinned(version)});
        }
    }
    return out;
}

Result<std::string> Registry::next_version(std::string_view name) const {
    const auto entries = list(name);
    const bool is_new = entries ? entries->empty() : entries.error().code() == ErrorCode::not_found;
    if (is_new) return std::string("1.0.0");
    if (!entries) return fail(entries.error());
    const std::string& newest = entries->front().manifest.version;
    const std::string core = newest.substr(0, newest.find('-'));
    const std::size_t first = core.find('.');
    const std::size_t second = core.find('.', first + 1);
    if (second == std::string::npos) return std::string("1.0.0");
    return fmt::format("{}.{}.0", core.substr(0, first),
                       std::stoul(core.substr(first + 1, second - first - 1)) + 1);
}

std::vector<std::string> Registry::names_for(std::string_view base_hash, std::size_t most) const {
    std::vector<std::string> out;
    for (const std::string& name : names()) {
        if (out.size() == most) break;
        const auto shelf = this->shelf(name);
        if (shelf && (*shelf)->current(base_hash) != nullptr) out.push_back(name);
    }
    return out;
}

std::uint64_t Registry::version() const noexcept {
    std::error_code none_yet;
    const auto bytes = fs::file_size(folder_ / changes_name, none_yet);
    return none_yet ? 0 : bytes;
}

fs::path Registry::file_of(const Manifest& manifest) const {
    return folder_ / "weights" / (manifest.hash + ".gguf");
}

Result<void> Registry::promote(std::string_view id) {
    TRY(const auto change, Change::begin(folder_));
    TRY(const Manifest manifest, find(id));
    TRY(Shelf shelf, shelf_to_change(manifest.name));
    TRY_DO(shelf.promote(manifest.version));
    forget(manifest.name);
    return {};
}

Result<Manifest> Registry::rollback(std::string_view name) {
    TRY(const auto change, Change::begin(folder_));
    TRY(Shelf shelf, shelf_to_change(std::string(name)));
    auto serving = shelf.rollback();
    forget(std::string(name));
    return serving;
}

Result<void> Registry::pin(std::string_view id, bool pinned) {
    TRY(const auto change, Change::begin(folder_));
    TRY(const Manifest manifest, find(id));
    TRY(Shelf shelf, shelf_to_change(manifest.name));
    TRY_DO(shelf.pin(manifest.version, pinned));
    forget(manifest.name);
    return {};
}

bool Registry::pinned(const Manifest& manifest) const {
    const auto shelf = this->shelf(manifest.name);
    return shelf && (*shelf)->pinned(manifest.version);
}

Result<void> Registry::check_signature(const Manifest& manifest,
                                       std::string_view public_key) const {
    std::string trusted(public_key);
    if (trusted.empty()) {
        TRY(const auto key, seal::SigningKey::load_or_create(folder_ / "signing.key"));
        trusted = seal::to_base64(key.public_key());
    }
    return adapters::check_signature(manifest, trusted);
}

Result<void> Registry::verify(std::string_view id, std::string_view public_key) const {
    TRY(const Manifest manifest, find(id));
    TRY_DO(check_signature(manifest, public_key));
    const fs::path file = file_of(manifest);
    TRY(const seal::Hash hash, seal::sha256_file(file));
    if (seal::to_hex(hash) != manifest.hash) {
        return fail(Error(ErrorCode::corrupt,
                          fmt::format("the weights of {} are damaged ({}); remove it and import it "
                                      "again",
                                      manifest.id(), file.string()))
                        .italian(fmt::format("i pesi di {} sono danneggiati ({}); toglierlo e "
                                             "importarlo di nuovo",
                                             manifest.id(), file.string())));
    }
    TRY(const LoraFile lora, read_lora(file));
    TRY_DO(check_numbers(file, lora));
    // The base may be on another machine; the bytes were checked against it when they came.
    const auto base = find_base(data_, {}, manifest.base);
    return base ? check_fit(lora, base->gguf) : Result<void>();
}

Result<fs::path> Registry::write_out(std::string_view id, const fs::path& folder) const {
    TRY(const Manifest manifest, find(id));
    std::error_code error;
    fs::create_directories(folder, error);
    const std::string stem = manifest.name + "-" + manifest.version;
    const fs::path file = folder / (stem + ".gguf");
    if (!error) fs::copy_file(file_of(manifest), file, error);
    if (!error) fs::permissions(file, fs::perms::owner_write, fs::perm_options::add, error);
    if (error) {
        errno = error.value();
        return models::file_error(file, "write");
    }
    TRY_DO(models::replace_file(folder / (stem + ".json"), to_text(manifest) + "\n"));
    return file;
}

void Registry::drop_unused(const std::string& hash) const {
    const auto all = list();
    const bool used = !all || std::ranges::any_of(*all, [&](const Entry& entry) {
        return entry.manifest.hash == hash;
    });
    if (used) return;
    std::error_code ignored;
    fs::remove(folder_ / "weights" / (hash + ".gguf"), ignored);
}

Result<void> Registry::remove(std::string_view id) {
    TRY(const auto change, Change::begin(folder_));
    const auto [name, version] = split_id(id);
    TRY(Shelf shelf, shelf_to_change(name));
    std::vector<Manifest> going;
    for (const auto& [one, manifest] : shelf.versions())
        if (version.empty() || one == version) going.push_back(manifest);
    if (going.empty()) return fail(find(id).error());
    const Manifest* current = shelf.current(going.front().base.hash);
    if (!version.empty() && shelf.versions().size() > 1 && current != nullptr &&
        current->version == version) {
        return fail(Error(ErrorCode::conflict,
                          fmt::format("{} serves; promote another version first: molly adapters "
                                      "promote {}@VERSION",
                                      id, name))
                        .italian(fmt::format("{} è in servizio; promuovere prima un'altra "
                                             "versione: molly adapters promote {}@VERSIONE",
                                             id, name)));
    }
    for (const Manifest& manifest : going)
        TRY_DO(shelf.remove(manifest.version));
    forget(name);
    for (const Manifest& manifest : going)
        drop_unused(manifest.hash);
    return {};
}

Result<Manifest> import_adapter(const fs::path& data, const fs::path& file, Manifest manifest,
                                const ImportOptions& options) {
    TRY(const auto registry, Registry::open(data));
    return registry->import(file, std::move(manifest), options);
}

}  // namespace molly::adapters
