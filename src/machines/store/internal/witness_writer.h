#pragma once
// Keeps signed heads in a file elsewhere. One thread at a time.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "store/internal/tables.h"

namespace molly::store::internal {

class WitnessWriter {
public:
    /// An empty `file` writes nothing.
    WitnessWriter(std::filesystem::path file, std::chrono::seconds every)
        : file_(std::move(file)), every_(every) {}

    /// Adds the last signed head when it is new and the last one written is `every` old, or `now`.
    /// A medium that is away is told once and tried again.
    void look(Tables& tables, bool now);

private:
    const std::filesystem::path file_;
    const std::chrono::seconds every_;
    std::optional<MonoTime> tried_;
    std::uint64_t written_ = 0;  // number of the last head in the file
    bool failing_ = false;
};

}  // namespace molly::store::internal
