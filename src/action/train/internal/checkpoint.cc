#include "train/internal/checkpoint.h"

#include <array>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "seal/seal.h"
#include "train/internal/whole_file.h"

namespace molly::train {
namespace {

constexpr std::uint64_t magic = 0x3250'4B43'594C'4C4DULL;  // "MLLYCKP2"

struct Header {
    std::uint64_t magic;
    std::uint64_t size;
    std::uint64_t best_size;
    std::uint64_t step;
    double held_out_loss;
    double best_held_out_loss;
    std::uint64_t evaluations_since_best;
    double loss_sum;
};

std::filesystem::path file_of(const std::filesystem::path& run) {
    return run / "checkpoint.bin";
}

std::string_view bytes_of(const Header& header) {
    return {reinterpret_cast<const char*>(&header), sizeof header};
}

std::string_view bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

seal::Hash hash_of(const Header& header, const Checkpoint& checkpoint) {
    const TrainingState& state = checkpoint.state;
    seal::HashStream hash;
    hash.add(bytes_of(header));
    for (const auto* array : {&state.weights, &state.first, &state.second, &checkpoint.best})
        hash.add(bytes_of(*array));
    return hash.take();
}

void write(std::ostream& stream, std::string_view bytes) {
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

Result<void> write_checkpoint(const std::filesystem::path& run, const Checkpoint& checkpoint) {
    const TrainingState& state = checkpoint.state;
    const Header header{magic,
                        state.weights.size(),
                        checkpoint.best.size(),
                        state.step,
                        checkpoint.held_out_loss,
                        checkpoint.best_held_out_loss,
                        checkpoint.evaluations_since_best,
                        checkpoint.loss_sum};
    return write_whole(file_of(run), [&](const std::filesystem::path& temporary) {
        std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
        write(stream, bytes_of(header));
        for (const auto* array : {&state.weights, &state.first, &state.second, &checkpoint.best})
            write(stream, bytes_of(*array));
        const seal::Hash hash = hash_of(header, checkpoint);
        stream.write(reinterpret_cast<const char*>(hash.data()), hash.size());
        stream.close();
        return stream.good();
    });
}

Result<Checkpoint> read_checkpoint(const std::filesystem::path& run, std::size_t size) {
    std::ifstream stream(file_of(run), std::ios::binary);
    if (!stream) return fail(ErrorCode::not_found, "the run has no checkpoint yet");
    Header header{};
    Checkpoint out;
    stream.read(reinterpret_cast<char*>(&header), sizeof header);
    const bool fits = stream.good() && header.magic == magic && header.size == size &&
                      (header.best_size == 0 || header.best_size == size);
    if (fits) {
        out.best.resize(header.best_size);
        for (auto* array : {&out.state.weights, &out.state.first, &out.state.second, &out.best}) {
            if (array != &out.best) array->resize(size);
            stream.read(reinterpret_cast<char*>(array->data()),
                        static_cast<std::streamsize>(array->size() * sizeof(float)));
        }
    }
    seal::Hash hash{};
    stream.read(reinterpret_cast<char*>(hash.data()), hash.size());
    if (!fits || !stream.good() || hash != hash_of(header, out)) {
        return fail(Error(ErrorCode::corrupt,
                          fmt::format("{} is damaged; delete it, and the run begins at its first "
                                      "step again",
                                      file_of(run).string()))
                        .italian(fmt::format("{} è danneggiato; eliminandolo, l'addestramento "
                                             "riparte dal primo passo",
                                             file_of(run).string())));
    }
    out.state.step = header.step;
    out.held_out_loss = header.held_out_loss;
    out.best_held_out_loss = header.best_held_out_loss;
    out.evaluations_since_best = header.evaluations_since_best;
    out.loss_sum = header.loss_sum;
    return out;
}

std::uint64_t checkpoint_step(const std::filesystem::path& run) {
    std::ifstream stream(file_of(run), std::ios::binary);
    Header header{};
    stream.read(reinterpret_cast<char*>(&header), sizeof header);
    return stream.good() && header.magic == magic ? header.step : 0;
}

}  // namespace molly::train
