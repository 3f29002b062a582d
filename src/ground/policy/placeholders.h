#pragma once
// What stands for an identifier while the request is with a third party, and what it stood for.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/finding.h"

namespace molly::policy {

/// The placeholders of one payload with their values. Constant; safe from any thread. In memory
/// only: it neither streams nor formats.
class Placeholders {
public:
    /// The value that `text`, a whole placeholder in either case, stands for; null when it was
    /// never issued.
    const std::string* value_of(std::string_view text) const;
    /// Whether `text` is the beginning of a placeholder, in either case, and not all of it.
    bool begins_one(std::string_view text) const;
    /// Bytes of the longest one; 0 when there is none.
    std::size_t longest() const noexcept { return longest_; }
    bool empty() const noexcept { return values_.empty(); }

private:
    friend class PlaceholderMap;
    void add(std::string_view placeholder, std::string value);

    std::map<std::string, std::string, std::less<>> values_;  // by placeholder, in lower case
    std::size_t longest_ = 0;
};

/// The placeholders of one conversation: `[IBAN_1_k7q2]`, where the end is the conversation's
/// nonce. The same value of the same kind has the same placeholder in every turn. Safe from any
/// thread, one payload at a time.
class PlaceholderMap {
public:
    /// `seed`: random bytes, at least 16, that nobody else knows. A map of more than `values_max`
    /// values is not kept: the next payload begins with a new nonce.
    explicit PlaceholderMap(std::string seed, std::size_t values_max = 1024);

    /// One payload in the making; holds the map.
    class Session {
    public:
        explicit Session(PlaceholderMap& map);
        Session(const Session&) = delete;
        Session& operator=(const Session&) = delete;
        Session(Session&&) = delete;
        Session& operator=(Session&&) = delete;
        ~Session();
        /// The texts of the payload: no placeholder may be part of any. First of all.
        void avoid(const std::vector<std::string_view>& texts);
        /// The placeholder of a value.
        const std::string& issue(domain::FindingKind kind, std::string_view value);
        /// All that were issued in this session.
        std::shared_ptr<const Placeholders> take();

    private:
        PlaceholderMap& map_;
        std::unique_lock<std::mutex> lock_;
        std::shared_ptr<Placeholders> issued_;
    };

private:
    void renew();
    const std::string& placeholder_of(domain::FindingKind kind, std::string_view value);

    std::string seed_;
    std::size_t values_max_;
    std::mutex mutex_;
    std::uint64_t generation_ = 0;
    std::string nonce_;
    std::map<std::pair<domain::FindingKind, std::string>, std::string> placeholders_;
    std::map<domain::FindingKind, std::uint32_t> numbers_;
};

/// `text` with ASCII letters in lower case.
std::string lower_ascii(std::string_view text);

}  // namespace molly::policy
