#include "profile/predictor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "profile/internal/ngrams.h"
#include "profile/internal/structure.h"

namespace molly::profile {
namespace {

constexpr std::uint32_t piece_bits = 18;
constexpr std::uint32_t pieces_count = 1U << piece_bits;
constexpr std::uint32_t topics_room = 64;
constexpr std::uint32_t difficulty_steps = 4;
constexpr std::uint32_t topics_from = pieces_count + structure_size;
constexpr std::uint32_t difficulty_from = topics_from + topics_room;
constexpr std::uint32_t width = difficulty_from + difficulty_steps + 1;
constexpr std::size_t shortest_piece = 2;
constexpr std::size_t longest_piece = 4;
// How much each view counts in how alike two prompts are: three views alike, the classifier's
// difficulty half as much, its topics a quarter.
const float view_share = std::sqrt(1.0F / 4);
const float difficulty_share = std::sqrt(0.5F / 4);
const float topics_share = std::sqrt(0.25F / 4);

using Sparse = std::vector<std::pair<std::uint32_t, float>>;

void set_length(Sparse& values, std::size_t from, float length) {
    double squares = 0;
    for (std::size_t i = from; i < values.size(); ++i)
        squares += static_cast<double>(values[i].second) * values[i].second;
    const auto factor = static_cast<float>(length / std::sqrt(std::max(squares, 1e-12)));
    for (std::size_t i = from; i < values.size(); ++i)
        values[i].second *= factor;
}

/// Runs of white space as one blank, one at each end.
std::string spaced(std::string_view text) {
    const std::string plain = folded(text);
    std::string out = " ";
    for (const char c : plain) {
        const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (!blank) out += c;
        if (blank && out.back() != ' ') out += ' ';
    }
    if (out.back() != ' ') out += ' ';
    return out;
}

enum class Side : std::uint8_t { stem, options };

std::uint32_t piece_hash(std::string_view piece, Side side) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U + piece.size() + (side == Side::options ? 64U : 0U);
    for (const char c : piece)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    hash ^= hash >> 32U;
    return static_cast<std::uint32_t>((hash * 0x9e3779b97f4a7c15U) >> (64U - piece_bits));
}

void put_pieces(std::string_view prompt, Side side, Sparse& out) {
    thread_local std::vector<float> counts(pieces_count);
    const std::string text = spaced(prompt);
    for (std::size_t size = shortest_piece; size <= longest_piece; ++size) {
        for (std::size_t at = 0; at + size <= text.size(); ++at) {
            const std::uint32_t hash = piece_hash(std::string_view(text).substr(at, size), side);
            if (counts[hash] == 0) out.emplace_back(hash, 0.0F);
            counts[hash] += 1;
        }
    }
    for (auto& [hash, count] : out) {
        count = counts[hash];
        counts[hash] = 0;
    }
}

/// The two steps that it lies between, by nearness: what is learned of it is a line of segments.
void put_difficulty(float difficulty, Sparse& out) {
    const float place = std::clamp(difficulty, 0.0F, 1.0F) * difficulty_steps;
    const auto low = std::min(static_cast<std::uint32_t>(place), difficulty_steps - 1);
    const float over = place - static_cast<float>(low);
    const std::size_t from = out.size();
    out.emplace_back(difficulty_from + low, 1 - over);
    out.emplace_back(difficulty_from + low + 1, over);
    set_length(out, from, difficulty_share);
}

/// What a predictor has learned.
struct Learned {
    std::vector<std::string> columns;
    std::vector<float> means;                 // shape: [columns]
    std::vector<float> rarities;              // of pieces; 0: seen too rarely to count
    std::vector<std::vector<float>> weights;  // shape: [columns][width]
};

Sparse features_of(const PromptView& view, const std::vector<float>& rarities) {
    Sparse out;
    out.reserve(view.stem.size() + view.options.size() + view.fixed.size());
    for (const Sparse* pieces : {&view.stem, &view.options}) {
        const std::size_t from = out.size();
        for (const auto& [hash, count] : *pieces) {
            if (rarities[hash] > 0) out.emplace_back(hash, (1 + std::log(count)) * rarities[hash]);
        }
        set_length(out, from, view_share);
    }
    out.insert(out.end(), view.fixed.begin(), view.fixed.end());
    return out;
}

std::vector<float> rarities_of(std::span<const PromptView* const> views) {
    std::vector<std::uint32_t> seen(pieces_count);
    for (const PromptView* view : views) {
        for (const Sparse* pieces : {&view->stem, &view->options}) {
            for (const auto& [hash, count] : *pieces)
                ++seen[hash];
        }
    }
    std::vector<float> rarities(pieces_count);
    for (std::uint32_t hash = 0; hash < pieces_count; ++hash) {
        if (seen[hash] < 2) continue;
        rarities[hash] = static_cast<float>(
            std::log((1.0 + static_cast<double>(views.size())) / (1.0 + seen[hash])));
    }
    return rarities;
}

double product(const Sparse& row, const std::vector<float>& weights) noexcept {
    double sum = 0;
    for (const auto& [at, value] : row)
        sum += static_cast<double>(value) * weights[at];
    return sum;
}

void add(const Sparse& row, double times, std::vector<float>& to) noexcept {
    for (const auto& [at, value] : row)
        to[at] += static_cast<float>(times * value);
}

/// Weights that make the squared errors of `targets` and the penalty least, by conjugate gradients.
std::vector<float> ridge(const std::vector<Sparse>& rows, const std::vector<double>& targets,
                         const PredictorOptions& options) {
    std::vector<float> weights(width);
    std::vector<float> left(width);
    for (std::size_t i = 0; i < rows.size(); ++i)
        add(rows[i], targets[i], left);
    std::vector<float> direction = left;
    const auto squares = [](const std::vector<float>& values) {
        double sum = 0;
        for (const float value : values)
            sum += static_cast<double>(value) * value;
        return sum;
    };
    double before = squares(left);
    std::vector<float> image(width);
    for (std::uint32_t round = 0; round < options.rounds && before > 1e-10; ++round) {
        std::fill(image.begin(), image.end(), 0.0F);
        for (const Sparse& row : rows)
            add(row, product(row, direction), image);
        double curvature = 0;
        for (std::uint32_t at = 0; at < width; ++at) {
            image[at] += static_cast<float>(options.penalty) * direction[at];
            curvature += static_cast<double>(image[at]) * direction[at];
        }
        const auto step = static_cast<float>(before / curvature);
        for (std::uint32_t at = 0; at < width; ++at) {
            weights[at] += step * direction[at];
            left[at] -= step * image[at];
        }
        const double now = squares(left);
        const auto keep = static_cast<float>(now / before);
        for (std::uint32_t at = 0; at < width; ++at)
            direction[at] = left[at] + keep * direction[at];
        before = now;
    }
    return weights;
}

constexpr std::array<char, 8> magic = {'m', 'o', 'l', 'l', 'y', 'p', 'r', '2'};

class RidgePredictor final : public Predictor {
public:
    explicit RidgePredictor(Learned learned) : learned_(std::move(learned)) {}

    const std::vector<std::string>& columns() const noexcept override { return learned_.columns; }

    std::vector<float> predict(const PromptView& view) const override {
        const Sparse row = features_of(view, learned_.rarities);
        std::vector<float> out;
        for (std::size_t column = 0; column < learned_.columns.size(); ++column) {
            out.push_back(learned_.means[column] +
                          static_cast<float>(product(row, learned_.weights[column])));
        }
        return out;
    }

    std::string bytes() const override {
        std::string out(magic.begin(), magic.end());
        const auto put = [&](const void* from, std::size_t size) {
            out.append(static_cast<const char*>(from), size);
        };
        const auto count = static_cast<std::uint32_t>(learned_.columns.size());
        put(&count, sizeof count);
        for (const std::string& column : learned_.columns) {
            const auto size = static_cast<std::uint32_t>(column.size());
            put(&size, sizeof size);
            out += column;
        }
        put(learned_.means.data(), learned_.means.size() * sizeof(float));
        put(learned_.rarities.data(), learned_.rarities.size() * sizeof(float));
        for (const auto& weights : learned_.weights)
            put(weights.data(), weights.size() * sizeof(float));
        return out;
    }

private:
    Learned learned_;
};

Error damaged() {
    return Error(ErrorCode::corrupt,
                 "this is no file of a learned predictor, or it is damaged; make it with `molly "
                 "eval router TABLE --save FILE`")
        .italian(
            "questo non è il file di un predittore appreso, o è danneggiato; si fa con `molly "
            "eval router TABELLA --save FILE`");
}

}  // namespace

PromptView view_of(std::string_view prompt, const Classifier& classifier) {
    PromptView view;
    const Question question = question_of(prompt);
    put_pieces(question.stem, Side::stem, view.stem);
    std::string options;
    for (const std::string_view option : question.options)
        options.append(option).append(1, ' ');
    if (!options.empty()) put_pieces(options, Side::options, view.options);
    for (const std::uint32_t indicator : structure_of(prompt))
        view.fixed.emplace_back(pieces_count + indicator % structure_size, 1.0F);
    set_length(view.fixed, 0, view_share);
    const std::size_t from = view.fixed.size();
    const Reading reading = classifier.read(prompt);
    for (std::size_t i = 0; i < std::min<std::size_t>(reading.topics.size(), topics_room); ++i) {
        view.fixed.emplace_back(topics_from + static_cast<std::uint32_t>(i), reading.topics[i]);
    }
    set_length(view.fixed, from, topics_share);
    put_difficulty(reading.difficulty, view.fixed);
    return view;
}

Result<std::shared_ptr<const Predictor>> Predictor::train(
    std::span<const PromptView* const> views, const std::vector<std::string>& columns,
    const std::vector<std::vector<float>>& scores, const PredictorOptions& options) {
    if (views.size() < 2 || columns.empty() || columns.size() != scores.size()) {
        return fail(Error(ErrorCode::invalid_request,
                          "a predictor needs at least two prompts and one column of scores")
                        .italian("un predittore vuole almeno due richieste e una colonna di "
                                 "punteggi"));
    }
    Learned learned;
    learned.columns = columns;
    learned.rarities = rarities_of(views);
    std::vector<Sparse> rows;
    for (const PromptView* view : views)
        rows.push_back(features_of(*view, learned.rarities));
    for (const std::vector<float>& column : scores) {
        double mean = 0;
        for (const float score : column)
            mean += score / static_cast<double>(column.size());
        std::vector<double> targets;
        for (const float score : column)
            targets.push_back(score - mean);
        learned.means.push_back(static_cast<float>(mean));
        learned.weights.push_back(ridge(rows, targets, options));
    }
    return std::make_shared<const RidgePredictor>(std::move(learned));
}

Result<std::shared_ptr<const Predictor>> Predictor::make(std::string_view bytes) {
    if (!bytes.starts_with(std::string_view(magic.data(), magic.size()))) return fail(damaged());
    bytes.remove_prefix(magic.size());
    const auto take = [&](void* to, std::size_t size) {
        if (bytes.size() < size) return false;
        if (size > 0) std::memcpy(to, bytes.data(), size);
        bytes.remove_prefix(size);
        return true;
    };
    std::uint32_t count = 0;
    if (!take(&count, sizeof count) || count == 0 || count > 1024) return fail(damaged());
    Learned learned;
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t size = 0;
        if (!take(&size, sizeof size) || size > bytes.size()) return fail(damaged());
        learned.columns.emplace_back(bytes.substr(0, size));
        bytes.remove_prefix(size);
    }
    learned.means.resize(count);
    learned.rarities.resize(pieces_count);
    if (!take(learned.means.data(), count * sizeof(float)) ||
        !take(learned.rarities.data(), pieces_count * sizeof(float)) ||
        bytes.size() != std::size_t{count} * width * sizeof(float))
        return fail(damaged());
    learned.weights.assign(count, std::vector<float>(width));
    for (auto& weights : learned.weights)
        std::ignore = take(weights.data(), width * sizeof(float));
    return std::make_shared<const RidgePredictor>(std::move(learned));
}

}  // namespace molly::profile
