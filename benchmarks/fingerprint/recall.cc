// How well labelled text is known again: passages of novels, copied whole or with some of their
// words changed, into other text; how often unrelated text is taken for them; and what it costs.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "annotate/fingerprint.h"
#include "seal/seal.h"
#include "store/store.h"

namespace {

using molly::annotate::Fingerprinter;
using molly::annotate::fingerprints_enough;
using Random = std::mt19937_64;

/// A text cut into its words; every passage is a run of them.
struct Book {
    std::vector<std::string> words;

    std::string passage(std::size_t from, std::size_t bytes) const {
        std::string out;
        for (std::size_t i = from; i < words.size() && out.size() < bytes; ++i)
            out += (out.empty() ? "" : " ") + words[i];
        return out;
    }
};

Book read(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    Book book;
    for (std::string word; stream >> word;)
        book.words.push_back(std::move(word));
    return book;
}

/// Each word becomes another one of the book with this probability.
std::string edited(const std::string& passage, double share, const Book& book, Random& random) {
    std::istringstream stream(passage);
    std::bernoulli_distribution changes(share);
    std::string out;
    for (std::string word; stream >> word;) {
        if (changes(random)) word = book.words[random() % book.words.size()];
        out += (out.empty() ? "" : " ") + word;
    }
    return out;
}

/// The first half of each book is labelled, in passages; the second half is what surrounds a pasted
/// passage, and what should not be known.
class Trial {
public:
    Trial(const Book& book, const Fingerprinter& prints, molly::store::Store& store, Random& random)
        : book_(book), prints_(prints), store_(store), random_(random) {}

    void label(std::size_t count, std::size_t bytes) {
        molly::domain::Label label;
        label.sensitivity = molly::domain::Sensitivity::secret;
        const std::size_t half = book_.words.size() / 2;
        for (std::size_t i = 0; i < count; ++i) {
            labelled_.push_back(i * (half / count));
            store_.remember(prints_.of(book_.passage(labelled_.back(), bytes)), label);
        }
    }
    bool known(const std::string& text) const {
        return store_.recognise(prints_.of(text), fingerprints_enough).has_value();
    }
    /// The share of passages of `bytes` that are known again, each within a page of other text.
    double recall(std::size_t bytes, double share_changed) {
        std::size_t hits = 0;
        for (const std::size_t from : labelled_) {
            const std::string passage = book_.passage(from, bytes);
            const std::string pasted = edited(passage, share_changed, book_, random_);
            hits += known(other(900) + "\n" + pasted + "\n" + other(900)) ? 1 : 0;
        }
        return static_cast<double>(hits) / static_cast<double>(labelled_.size());
    }
    std::string other(std::size_t bytes) {
        const std::size_t half = book_.words.size() / 2;
        return book_.passage(half + random_() % (half - 1000), bytes);
    }

private:
    const Book& book_;
    const Fingerprinter& prints_;
    molly::store::Store& store_;
    Random& random_;
    std::vector<std::size_t> labelled_;
};

struct Cost {
    double median = 0;
    double tenth = 0;  // a tenth of the batches took less: what other work disturbs least
};

/// Microseconds of processor time for one of `count`, over batches of a hundred.
template <class Run>
Cost cost_of(std::size_t count, const Run& run) {
    constexpr std::size_t batch = 100;
    std::vector<double> batches;
    for (std::size_t i = 0; i + batch <= count; i += batch) {
        const std::clock_t start = std::clock();
        for (std::size_t one = i; one < i + batch; ++one)
            run(one);
        const auto ticks = static_cast<double>(std::clock() - start);
        batches.push_back(ticks * 1e6 / CLOCKS_PER_SEC / batch);
    }
    std::sort(batches.begin(), batches.end());
    return {batches[batches.size() / 2], batches[batches.size() / 10]};
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_fingerprint TEXT...\n");
        return 2;
    }
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("molly-bench-" + molly::seal::random_token(8));
    molly::store::Options options;
    options.folder = folder;
    auto store = molly::store::Store::open(options);
    if (!store) return 1;
    const Fingerprinter prints(molly::seal::random_bytes(32));
    Random random(20261130);
    std::string json = "{\"bench\":\"fingerprint\"";
    std::vector<std::string> pages;
    std::size_t unrelated = 0;
    std::size_t taken = 0;
    constexpr std::size_t passages = 500;
    for (int i = 1; i < count; ++i) {
        const Book book = read(words[i]);
        if (book.words.size() < 100'000) return 2;
        const std::string name = std::filesystem::path(words[i]).filename().string().substr(0, 2);
        Trial trial(book, prints, **store, random);
        trial.label(passages, 2000);
        for (const std::size_t bytes : {150U, 300U, 1000U}) {
            for (const double changed : {0.0, 0.1, 0.2}) {
                const double share = trial.recall(bytes, changed);
                json += fmt::format(",\"recall_{}_{}b_{:.0f}pct\":{:.4f}", name, bytes,
                                    changed * 100, share);
                std::fprintf(stderr, "%s %4zu bytes, %2.0f%% of the words changed: recall %.3f\n",
                             name.c_str(), std::size_t{bytes}, changed * 100, share);
            }
        }
        for (std::size_t one = 0; one < 5000; ++one) {
            pages.push_back(trial.other(2000));
            const bool known = trial.known(pages.back());
            if (known) std::fprintf(stderr, "taken: %s\n", pages.back().c_str());
            taken += known ? 1 : 0;
            ++unrelated;
        }
    }
    std::size_t kept = 0;
    const Cost take =
        cost_of(pages.size(), [&](std::size_t i) { kept += prints.of(pages[i]).size(); });
    const Cost look = cost_of(pages.size(), [&](std::size_t i) {
        kept += (*store)->recognise(prints.of(pages[i]), fingerprints_enough) ? 1U : 0U;
    });
    std::fprintf(stderr, "unrelated pages of 2 KB taken for labelled ones: %zu of %zu\n", taken,
                 unrelated);
    std::fprintf(stderr,
                 "2 KB, us of processor time, median (tenth): %.1f (%.1f) to fingerprint, "
                 "%.1f (%.1f) with the look-up\n",
                 take.median, take.tenth, look.median, look.tenth);
    json += fmt::format(
        ",\"false_matches\":{},\"unrelated\":{},\"us_fingerprint_2kb\":{:.2f},"
        "\"us_2kb\":{:.2f},\"us_2kb_p10\":{:.2f}}}",
        taken, unrelated, take.median, look.median, look.tenth);
    store->reset();
    std::filesystem::remove_all(folder);
    std::printf("%s\n", json.c_str());
    return kept > 0 ? 0 : 1;
}
