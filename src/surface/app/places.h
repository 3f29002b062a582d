#pragma once
// Where things are on this machine: configuration, data folder, the running server's address.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/config.h"
#include "base/result.h"

namespace molly::app {

/// What the general options of the command line say; empty: not given.
struct PlaceOptions {
    std::string config;
    std::string data;
};

struct Places {
    std::filesystem::path config;  ///< empty: the built-in defaults
    std::filesystem::path data;
    std::filesystem::path server_file() const { return data / "run" / "server.json"; }
};

/// --config, $MOLLY_CONFIG, ~/.config/molly/molly.toml; --data, $MOLLY_DATA, ~/.local/share/molly.
Places find_places(const PlaceOptions& options);

/// The configuration of these places. Errors: not_found (a file that was named), invalid_request.
Result<Config> read_config(const Places& places);

/// A server that runs on this machine, as it described itself.
struct RunningServer {
    std::string address;
    std::uint16_t port = 0;
    std::string token;  ///< the owner's, for this run of the server
    std::int64_t process = 0;
};

/// Writes the file that other commands find the server by (mode 0600). Errors: unavailable.
Result<void> write_running(const Places& places, const RunningServer& server);
/// The server that runs on this data folder; nothing when its process is gone.
std::optional<RunningServer> find_running(const Places& places);

/// Makes a folder for its owner only. Errors: unavailable.
Result<void> make_private_folder(const std::filesystem::path& folder);

/// The executable that runs.
std::filesystem::path executable();

}  // namespace molly::app
