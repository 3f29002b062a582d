#include "app/adapter_sizes.h"

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "app/house.h"
#include "base/json.h"
#include "engine/adapter_load.h"
#include "train/lora.h"

namespace molly::app {
namespace {

struct SizeOptions {
    std::string base;
    std::string modules = "all";
};

/// A folder that goes with its owner.
class ScratchFolder {
public:
    ScratchFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "molly-XXXXXX").string();
        if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ScratchFolder(ScratchFolder&&) = delete;
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

Result<void> sizes(const General& general, const SizeOptions& options) {
    const Terminal& terminal = general.terminal;
    TRY(const auto base, find_model(options.base, find_places(general.places)));
    TRY(const train::AdapterSizes sizes, train::adapter_sizes(base, options.modules));
    const ScratchFolder scratch;
    json::array ranks;
    std::vector<std::vector<std::string>> rows;
    rows.push_back(terminal.words({{"rank", "rango"},
                                   {"parameters", "parametri"},
                                   {"of the base", "della base"},
                                   {"fp16", "fp16"},
                                   {"int8", "int8"},
                                   {"into memory", "in memoria"}}));
    for (const train::AdapterSize& size : sizes.ranks) {
        const auto file = scratch.path() / fmt::format("rank-{}.gguf", size.rank);
        TRY_DO(train::write_fresh_adapter(base, options.modules, size.rank, file));
        TRY(const double load_ms, engine::time_adapter_load(base, file));
        ranks.push_back(json::object{{"rank", size.rank},
                                     {"parameters", size.parameters},
                                     {"bytes_f16", size.bytes_f16},
                                     {"bytes_int8", size.bytes_int8},
                                     {"load_ms", load_ms}});
        rows.push_back({std::to_string(size.rank), std::to_string(size.parameters),
                        fmt::format("{:.2f}%", 100.0 * static_cast<double>(size.parameters) /
                                                   static_cast<double>(sizes.base_parameters)),
                        fmt::format("{:.1f} kB", static_cast<double>(size.bytes_f16) / 1e3),
                        fmt::format("{:.1f} kB", static_cast<double>(size.bytes_int8) / 1e3),
                        fmt::format("{:.2f} ms", load_ms)});
    }
    if (terminal.json) {
        terminal.line(to_text(json::value(json::object{{"base", sizes.base},
                                                       {"base_parameters", sizes.base_parameters},
                                                       {"base_bytes", sizes.base_bytes},
                                                       {"ranks", std::move(ranks)}})));
        return {};
    }
    terminal.line(fmt::format(
        "{}: {:.1f} M {}, {:.1f} MB", sizes.base, static_cast<double>(sizes.base_parameters) / 1e6,
        terminal.say("parameters", "parametri"), static_cast<double>(sizes.base_bytes) / 1e6));
    terminal.table(rows);
    return {};
}

}  // namespace

void declare_adapter_sizes(Command& adapters) {
    const auto options = std::make_shared<SizeOptions>();
    Command command = adapters.add(
        "sizes", {"What an adapter on a model would weigh, and how long it takes into memory",
                  "Quanto peserebbe un adattatore su un modello, e quanto impiega a caricarsi"});
    command
        .argument("base", options->base,
                  {"GGUF file, or name of a model that is here", "file GGUF, o nome di un modello"})
        .option("--modules", options->modules,
                {"all, attention, feed_forward, or query,key,value,output,gate,up,down (all)",
                 "all, attention, feed_forward, o query,key,value,output,gate,up,down (all)"})
        .examples({"  molly adapters sizes model.gguf\n", "  molly adapters sizes model.gguf\n"});
    command.run([&general = command.general(), options] {
        return finish(general, sizes(general, *options));
    });
}

}  // namespace molly::app
