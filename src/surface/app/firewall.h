#pragma once
// The network exits that the configuration can ever use, and the same as a packet filter of the
// operating system: a second lock, in case the first one fails. Pure; looks no name up.
#include <cstdint>
#include <string>
#include <vector>

#include "app/config.h"

namespace molly::app {

struct Exit {
    std::string name;  ///< of the target, or `models` for downloads
    domain::Tier tier = domain::Tier::t3;
    std::string host;  ///< a name or an address
    std::uint16_t port = 0;
    bool address = false;  ///< whether the host is an address already
};

/// Remote targets that some request could be permitted to reach, and `download_hosts` (https),
/// which `molly models pull` may use.
std::vector<Exit> exits_of(const Config& config, const std::vector<std::string>& download_hosts);

/// A rule set for `nft -f` that lets `user` reach these exits and this machine, and rejects the
/// rest of what `user` sends.
std::string nftables_of(const std::vector<Exit>& exits, std::uint32_t user);

}  // namespace molly::app
