#include "adapters/internal/base_model.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "models/catalogue.h"
#include "seal/seal.h"

namespace molly::adapters {
namespace {

namespace fs = std::filesystem;

std::string shorten(const std::string& hash) {
    return hash.substr(0, 12);
}

Error no_base(const Base& wanted) {
    const std::string named = !wanted.name.empty() ? wanted.name : shorten(wanted.hash);
    return Error(ErrorCode::not_found,
                 fmt::format("the base model{}{} is not here; import it (molly models import FILE) "
                             "or name its file with --base",
                             named.empty() ? "" : " ", named))
        .italian(fmt::format("il modello di base{}{} non è qui; importarlo (molly models import "
                             "FILE) o indicarne il file con --base",
                             named.empty() ? "" : " ", named));
}

/// The catalogue's model under that hash, or without a hash under that name.
Result<models::Model> in_catalogue(const fs::path& data, const Base& wanted) {
    const auto catalogue = models::Catalogue::open(data);
    if (!catalogue) return fail(no_base(wanted));
    for (const models::Model& model : catalogue->list()) {
        if (wanted.hash.empty() ? model.name == wanted.name : model.hash == wanted.hash)
            return model;
    }
    return fail(no_base(wanted));
}

Result<Base> describe(const fs::path& data, const fs::path& file, const models::Gguf& gguf) {
    Base base;
    const auto catalogue = models::Catalogue::open(data);
    std::error_code ignored;
    if (catalogue) {
        const auto& known = catalogue->list();
        const auto same = std::find_if(known.begin(), known.end(), [&](const auto& model) {
            return fs::equivalent(model.file, file, ignored);
        });
        if (same != known.end()) {
            base.name = same->name;
            base.hash = same->hash;
        }
    }
    if (base.hash.empty()) {
        TRY(const seal::Hash hash, seal::sha256_file(file));
        base.hash = seal::to_hex(hash);
        base.name = models::model_name_of(file.filename().string());
    }
    base.architecture = gguf.text("general.architecture");
    base.quantization = gguf.quantization();
    TRY(base.tokenizer_hash, models::tokenizer_hash(file, gguf));
    return base;
}

std::unexpected<Error> another(std::string_view what, std::string_view cosa,
                               const std::string& made_for, const std::string& here) {
    return fail(Error(ErrorCode::conflict,
                      fmt::format("the adapter was made for another {} ({}..., this one is {}...); "
                                  "name the right base with --base, or train it again on this one",
                                  what, shorten(made_for), shorten(here)))
                    .reason("adapter_mismatch")
                    .italian(fmt::format("l'adattatore è per un altro {} ({}..., questo è {}...); "
                                         "indicare la base giusta con --base, o allenarlo di "
                                         "nuovo su questa",
                                         cosa, shorten(made_for), shorten(here))));
}

}  // namespace

Result<BaseModel> find_base(const fs::path& data, const fs::path& file, const Base& wanted) {
    fs::path path = file;
    if (path.empty()) {
        TRY(const models::Model model, in_catalogue(data, wanted));
        path = model.file;
    }
    BaseModel found;
    TRY(found.gguf, models::read_gguf(path));
    TRY(found.base, describe(data, path, found.gguf));
    const std::string file_hash = found.base.hash;
    if (const std::string original = found.gguf.text(models::made_from_key); !original.empty())
        found.base.hash = original;
    if (!wanted.hash.empty() && wanted.hash != found.base.hash && wanted.hash != file_hash)
        return another("base", "modello", wanted.hash, found.base.hash);
    if (!wanted.tokenizer_hash.empty() && wanted.tokenizer_hash != found.base.tokenizer_hash)
        return another("tokenizer", "tokenizzatore", wanted.tokenizer_hash,
                       found.base.tokenizer_hash);
    if (!wanted.name.empty()) found.base.name = wanted.name;
    return found;
}

}  // namespace molly::adapters
