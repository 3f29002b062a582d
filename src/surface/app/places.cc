#include "app/places.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

namespace molly::app {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

fs::path home() {
    const std::string folder = environment("HOME");
    return folder.empty() ? fs::current_path() : fs::path(folder);
}

fs::path under(const char* variable, const char* fallback) {
    const std::string folder = environment(variable);
    return (folder.empty() ? home() / fallback : fs::path(folder)) / "molly";
}

Error cannot_write(const fs::path& path) {
    return Error(ErrorCode::unavailable,
                 fmt::format("cannot write {}; check that the folder is yours", path.string()))
        .italian(fmt::format("non si può scrivere {}; controllare che la cartella sia tua",
                             path.string()));
}

}  // namespace

Places find_places(const PlaceOptions& options) {
    Places places;
    if (!options.config.empty()) {
        places.config = options.config;
    } else if (const std::string named = environment("MOLLY_CONFIG"); !named.empty()) {
        places.config = named;
    } else if (const fs::path usual = under("XDG_CONFIG_HOME", ".config") / "molly.toml";
               fs::exists(usual)) {
        places.config = usual;
    }
    if (!options.data.empty()) {
        places.data = options.data;
    } else if (const std::string named = environment("MOLLY_DATA"); !named.empty()) {
        places.data = named;
    } else {
        places.data = under("XDG_DATA_HOME", ".local/share");
    }
    places.data = fs::absolute(places.data).lexically_normal();
    return places;
}

Result<Config> read_config(const Places& places) {
    TRY(Config config,
        places.config.empty() ? parse_config("", "built-in defaults") : load_config(places.config));
    config.store.folder = places.data;
    return config;
}

Result<void> make_private_folder(const fs::path& folder) {
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (!fault) fs::permissions(folder, fs::perms::owner_all, fault);
    if (fault) return fail(cannot_write(folder));
    return {};
}

Result<void> write_running(const Places& places, const RunningServer& server) {
    const fs::path file = places.server_file();
    TRY_DO(make_private_folder(file.parent_path()));
    json::object out;
    out["address"] = server.address;
    out["port"] = server.port;
    out["token"] = server.token;
    out["process"] = server.process;
    const std::string text = to_text(json::value(std::move(out)));
    fs::path fresh = file;
    fresh += ".new";
    const int descriptor =
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor < 0) return fail(cannot_write(file));
    const bool written =
        ::fchmod(descriptor, S_IRUSR | S_IWUSR) == 0 &&
        ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(descriptor);
    std::error_code fault;
    if (written) fs::rename(fresh, file, fault);
    if (!written || fault) return fail(cannot_write(file));
    return {};
}

std::optional<RunningServer> find_running(const Places& places) {
    std::ifstream in(places.server_file(), std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) return std::nullopt;
    const auto parsed = parse_json(text.view());
    if (!parsed || !parsed->is_object()) return std::nullopt;
    const json::object& object = parsed->get_object();
    const json::value* address = object.if_contains("address");
    const json::value* port = object.if_contains("port");
    const json::value* token = object.if_contains("token");
    const json::value* process = object.if_contains("process");
    const bool whole = address != nullptr && address->is_string() && port != nullptr &&
                       port->is_int64() && token != nullptr && token->is_string() &&
                       process != nullptr && process->is_int64();
    if (!whole) return std::nullopt;
    RunningServer server;
    server.address = std::string(address->get_string());
    server.port = static_cast<std::uint16_t>(port->get_int64());
    server.token = std::string(token->get_string());
    server.process = process->get_int64();
    const bool alive = server.process > 1 &&
                       (::kill(static_cast<pid_t>(server.process), 0) == 0 || errno == EPERM);
    return alive ? std::optional(std::move(server)) : std::nullopt;
}

fs::path executable() {
    std::error_code fault;
    return fs::read_symlink("/proc/self/exe", fault);
}

}  // namespace molly::app
