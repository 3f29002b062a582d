#include "adapters/internal/signing.h"

#include <string>

#include <fmt/format.h>

#include "seal/seal.h"

namespace molly::adapters {

Result<void> check_signature(const Manifest& manifest, std::string_view trusted) {
    TRY(const std::string signer, seal::from_base64(manifest.signature.public_key));
    TRY(const std::string value, seal::from_base64(manifest.signature.value));
    if (!seal::verify(signer, to_text(manifest, false), value)) {
        return fail(Error(ErrorCode::corrupt,
                          fmt::format("the manifest of {} is not the one that was signed; remove "
                                      "it and import the adapter again",
                                      manifest.id()))
                        .italian(fmt::format("il manifesto di {} non è quello firmato; toglierlo e "
                                             "importare di nuovo l'adattatore",
                                             manifest.id())));
    }
    if (trusted == manifest.signature.public_key) return {};
    return fail(Error(ErrorCode::denied,
                      fmt::format("{} is signed by another key; when you trust it, name it: "
                                  "--public-key {}",
                                  manifest.id(), manifest.signature.public_key))
                    .italian(fmt::format("{} è firmato con un'altra chiave; se è fidata, "
                                         "indicarla: --public-key {}",
                                         manifest.id(), manifest.signature.public_key)));
}

}  // namespace molly::adapters
