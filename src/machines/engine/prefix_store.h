#pragma once
// Where the keys and values of prompts' beginnings lie while nobody computes with them, and beyond
// the life of the process. The engine says which and gives the bytes; whoever implements this seals
// them. `keeps` and `bytes_max` never wait and may be called from any thread; the rest waits for
// the disk and is called by one thread at a time.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/label.h"

namespace molly::engine {

/// What is kept of one beginning, but for its bytes.
struct PrefixRecord {
    std::string id;      ///< given by the store
    std::string layout;  ///< how the bytes are to be read: another one means nothing here
    std::string key;     ///< all but the tokens that keys and values depend on, the member included
    std::vector<std::int32_t> tokens;
    std::string adapters;  ///< for people: `law@1.0.0`
    std::string member;
    domain::Sensitivity sensitivity = domain::Sensitivity::secret;
    std::uint64_t bytes = 0;  ///< of keys and values
};

/// What a layout of this build begins with: llama.cpp's version and that of its states.
std::string_view prefix_engine() noexcept;

class PrefixStore {
public:
    virtual ~PrefixStore() = default;

    /// Whether content of this class may lie on disk.
    virtual bool keeps(domain::Sensitivity sensitivity) const noexcept = 0;
    virtual std::uint64_t bytes_max() const noexcept = 0;

    /// What there is for this model.
    virtual std::vector<PrefixRecord> list() = 0;
    /// The bytes as they were saved. Errors: not_found; corrupt (and it is gone); unavailable.
    virtual Result<std::string> load(const std::string& id) = 0;
    /// Keeps `bytes` under a new id, in the place of what was not used for longest. Errors: denied
    /// (its class), too_large, unavailable.
    virtual Result<std::string> save(const PrefixRecord& record, std::string_view bytes) = 0;
    /// It was asked for just now. False: it is not there any more.
    virtual bool touch(const std::string& id) = 0;
    virtual void drop(const std::string& id) = 0;
    /// Removes what may be kept no longer.
    virtual void expire() = 0;
};

}  // namespace molly::engine
