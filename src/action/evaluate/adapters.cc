#include "evaluate/adapters.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "engine/engine.h"
#include "evaluate/internal/asker.h"
#include "evaluate/panel.h"
#include "seal/seal.h"

namespace molly::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t bootstrap_seed = 1;
constexpr std::uint32_t curve_rows_max = 100'000;

/// The answers of one way of asking, graded.
struct Answers {
    std::vector<double> exact;  // shape: [rows]
    std::vector<double> partial;
    std::vector<std::uint32_t> shots;
    Score score;
};

class Trial {
public:
    Trial(const AdapterTrial& wanted, engine::Engine& engine, const TrialProgress& progress)
        : wanted_(wanted), engine_(engine), progress_(progress) {}

    std::size_t rows_of(const Panel& panel) const {
        const std::size_t all = panel.held_out.size();
        return wanted_.rows == 0 ? all : std::min<std::size_t>(wanted_.rows, all);
    }

    Result<Answers> run(const std::string& way, const Panel& panel, std::size_t rows,
                        std::uint32_t shots_max, const std::optional<engine::AdapterUse>& adapter) {
        const auto shots =
            static_cast<std::uint32_t>(std::min<std::size_t>(shots_max, panel.known.size()));
        std::vector<Reply> replies(rows);
        std::vector<std::uint32_t> used(rows, shots);
        std::vector<std::size_t> open(rows);
        std::iota(open.begin(), open.end(), std::size_t{0});
        // What does not fit is asked again with an example less.
        for (std::uint32_t tries = shots + 1; tries > 0 && !open.empty(); --tries) {
            std::vector<Question> questions;
            for (const std::size_t row : open)
                questions.push_back(question_of(panel, row, tries - 1, adapter));
            TRY(auto asked, ask_all(engine_, questions, [&](std::size_t done) {
                    progress_(panel.name + " " + way, rows - open.size() + done, rows);
                }));
            std::vector<std::size_t> left;
            for (std::size_t i = 0; i < open.size(); ++i) {
                used[open[i]] = tries - 1;
                if (asked[i].too_long) left.push_back(open[i]);
                replies[open[i]] = std::move(asked[i]);
            }
            open = std::move(left);
        }
        return grade_all(panel, replies, std::move(used));
    }

private:
    Question question_of(const Panel& panel, std::size_t row, std::uint32_t shots,
                         const std::optional<engine::AdapterUse>& adapter) const {
        const Item& item = panel.held_out[row];
        Question question{.messages = {}, .schema = &panel.schema, .adapter = adapter};
        auto turn = item.question.begin();
        while (turn != item.question.end() && turn->role == domain::Role::system)
            question.messages.push_back(*turn++);
        for (std::size_t i = 0; i < std::min<std::size_t>(shots, panel.known.size()); ++i) {
            for (const domain::Message& shown : panel.known[i].question) {
                if (shown.role != domain::Role::system) question.messages.push_back(shown);
            }
            question.messages.push_back(
                domain::text_message(domain::Role::assistant, panel.known[i].answer));
        }
        question.messages.insert(question.messages.end(), turn, item.question.end());
        return question;
    }

    static Answers grade_all(const Panel& panel, const std::vector<Reply>& replies,
                             std::vector<std::uint32_t> shots) {
        Answers out;
        out.shots = std::move(shots);
        std::map<std::string, std::pair<std::size_t, std::size_t>> slices;
        std::size_t hits = 0;
        for (std::size_t i = 0; i < replies.size(); ++i) {
            const Item& item = panel.held_out[i];
            const Grade graded = grade(item.expected, replies[i].text);
            out.exact.push_back(graded.exact ? 1 : 0);
            out.partial.push_back(graded.partial);
            hits += graded.exact ? 1 : 0;
            out.score.too_long += replies[i].too_long ? 1 : 0;
            out.score.prompt_tokens += replies[i].prompt_tokens;
            auto& [slice_hits, slice_rows] = slices[item.slice];
            slice_hits += graded.exact ? 1 : 0;
            ++slice_rows;
        }
        const auto n = static_cast<double>(std::max<std::size_t>(1, replies.size()));
        out.score.exact = wilson(hits, replies.size());
        out.score.partial = std::accumulate(out.partial.begin(), out.partial.end(), 0.0) / n;
        out.score.prompt_tokens /= n;
        if (slices.size() > 1) {
            for (const auto& [name, counts] : slices)
                out.score.slices[name] = wilson(counts.first, counts.second);
        }
        return out;
    }

    const AdapterTrial& wanted_;
    engine::Engine& engine_;
    const TrialProgress& progress_;
};

Result<engine::AdapterUse> adapter_of(const fs::path& file) {
    engine::AdapterUse use;
    use.id = file.stem().string();
    TRY(const seal::Hash hash, seal::sha256_file(file));
    use.hash = seal::to_hex(hash);
    use.file = file;
    return use;
}

/// TASK-ROWS.gguf by rows.
std::map<std::uint32_t, fs::path> curve_of(const fs::path& folder, const std::string& task) {
    std::map<std::uint32_t, fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string stem = entry.path().stem().string();
        if (entry.path().extension() != ".gguf" || !stem.starts_with(task + "-")) continue;
        const std::string number = stem.substr(task.size() + 1);
        const bool digits =
            !number.empty() && number.size() <= 6 &&
            std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
        if (!digits) continue;
        const auto rows = static_cast<std::uint32_t>(std::stoul(number));
        if (rows > 0 && rows <= curve_rows_max) found.emplace(rows, entry.path());
    }
    return found;
}

Estimate gain_over(const Answers& with, const Answers& without) {
    const std::vector<std::vector<double>> one = {differences(with.exact, without.exact)};
    return mean_of_groups(one, bootstrap_seed);
}

/// The whole trial of one adapter folder.
class Session {
public:
    Session(const AdapterTrial& wanted, engine::Engine& engine, std::vector<Panel> panels,
            const TrialProgress& progress)
        : wanted_(wanted), panels_(std::move(panels)), trial_(wanted, engine, progress) {}

    Result<AdapterReport> run() {
        AdapterReport report;
        std::vector<Answers> bare;
        for (const Panel& panel : panels_) {
            TRY(auto answers, trial_.run("base", panel, trial_.rows_of(panel), 0, std::nullopt));
            bare.push_back(std::move(answers));
        }
        for (std::size_t i = 0; i < panels_.size(); ++i) {
            TRY(auto one, run_panel(i, bare));
            report.panels.push_back(std::move(one));
        }
        if (!gains_.empty()) {
            report.gain_mean = mean_of_groups(gains_, bootstrap_seed);
            report.gain_shots_mean = mean_of_groups(gains_shots_, bootstrap_seed);
        }
        return report;
    }

private:
    Result<PanelReport> run_panel(std::size_t number, const std::vector<Answers>& bare) {
        const Panel& panel = panels_[number];
        PanelReport report;
        report.name = panel.name;
        report.rows = static_cast<std::uint32_t>(trial_.rows_of(panel));
        report.base = bare[number].score;
        TRY(const Answers shots,
            trial_.run("shots", panel, report.rows, wanted_.shots, std::nullopt));
        report.shots = shots.score;
        report.shots_mean = std::accumulate(shots.shots.begin(), shots.shots.end(), 0.0) /
                            std::max(1.0, static_cast<double>(report.rows));
        const fs::path file = wanted_.adapters / (panel.name + ".gguf");
        if (wanted_.adapters.empty() || !fs::exists(file)) return report;
        TRY(const auto adapter, adapter_of(file));
        TRY(const Answers special, trial_.run("specialist", panel, report.rows, 0, adapter));
        report.specialist = special.score;
        report.gain = gain_over(special, bare[number]);
        report.gain_shots = gain_over(special, shots);
        gains_.push_back(differences(special.exact, bare[number].exact));
        gains_shots_.push_back(differences(special.exact, shots.exact));
        for (const auto& [rows, path] : curve_of(wanted_.adapters, panel.name)) {
            TRY(const auto smaller, adapter_of(path));
            TRY(const Answers learned,
                trial_.run(std::to_string(rows), panel, report.rows, 0, smaller));
            report.curve[rows] = learned.score.exact;
        }
        TRY_DO(run_foreign(number, bare, adapter, report));
        return report;
    }

    /// The next panel in the row, with an adapter that never saw its kind.
    Result<void> run_foreign(std::size_t number, const std::vector<Answers>& bare,
                             const engine::AdapterUse& adapter, PanelReport& report) {
        const std::size_t other = (number + 1) % panels_.size();
        if (wanted_.foreign_rows == 0 || other == number) return {};
        const Panel& panel = panels_[other];
        const std::size_t rows = std::min<std::size_t>(wanted_.foreign_rows, trial_.rows_of(panel));
        TRY(const Answers with, trial_.run("with " + adapter.id, panel, rows, 0, adapter));
        Answers without;
        const auto& before = bare[other].exact;
        without.exact.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(rows));
        Foreign foreign;
        foreign.task = panel.name;
        foreign.with = with.score.exact.mean;
        foreign.base = std::accumulate(without.exact.begin(), without.exact.end(), 0.0) /
                       std::max(1.0, static_cast<double>(rows));
        foreign.change = gain_over(with, without);
        report.foreign = std::move(foreign);
        return {};
    }

    const AdapterTrial& wanted_;
    std::vector<Panel> panels_;
    Trial trial_;
    std::vector<std::vector<double>> gains_, gains_shots_;
};

}  // namespace

Result<AdapterReport> try_adapters(const AdapterTrial& trial, const TrialProgress& progress) {
    const auto began = std::chrono::steady_clock::now();
    TRY(auto panels, read_panels(trial.tasks, trial.only));
    engine::Limits limits;
    limits.threads = trial.threads;
    limits.adapter_numbers = trial.numbers;
    TRY(const auto engine, engine::Engine::open(trial.base, limits));
    Session session(trial, *engine, std::move(panels), progress);
    TRY(AdapterReport report, session.run());
    report.base = engine->describe().name;
    report.parameters = engine->describe().parameters;
    TRY(const seal::Hash hash, seal::sha256_file(trial.base));
    report.base_hash = seal::to_hex(hash);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return report;
}

}  // namespace molly::evaluate
