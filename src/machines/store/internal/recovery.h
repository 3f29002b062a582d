#pragma once
// What a journal says that the database does not know yet, after a process has died. Pure, but for
// its warnings.
#include <cstddef>
#include <vector>

#include "store/internal/journal.h"
#include "store/internal/ledger.h"
#include "store/internal/signer.h"
#include "store/internal/tables.h"

namespace molly::store::internal {

struct Recovered {
    std::vector<Row> rows;            ///< in their places after the stored chain
    std::size_t without_outcome = 0;  ///< of them, requests that nobody saw the end of
};

/// `chain` is where the database ends, and moves to the end of the rows. Errors: corrupt.
Result<Recovered> recover_rows(std::vector<JournalFile> files, const Signer& signer,
                               const seal::Hash& journal_key, ChainState& chain);

}  // namespace molly::store::internal
