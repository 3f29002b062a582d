// Runs the detectors over lines of {"t": text} and writes what they find, one line of spans each;
// then how long they take. The names model is a file, so that each fold of a test has its own.
//
// usage: bench_detect MODEL|- [--time] < ROWS     `-`: the model in the binary; --time: only time
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "annotate/detector.h"
#include "base/json.h"

namespace {

using namespace molly;  // NOLINT(google-build-using-namespace): one small program

std::vector<std::string> read_texts() {
    std::vector<std::string> texts;
    for (std::string line; std::getline(std::cin, line);) {
        const auto parsed = parse_json(line);
        if (!parsed) continue;
        const json::string& text = parsed->as_object().at("t").as_string();
        texts.emplace_back(text.data(), text.size());
    }
    return texts;
}

void print(const std::vector<domain::Finding>& findings) {
    std::string line = "[";
    for (const domain::Finding& finding : findings) {
        if (line.size() > 1) line += ',';
        line += "[" + std::to_string(finding.begin) + "," + std::to_string(finding.end) + ",\"" +
                std::string(to_string(finding.kind)) + "\"]";
    }
    std::puts((line + "]").c_str());
}

/// Processor time of this thread, which other programs on the machine do not lengthen much.
double processor_us() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// The texts in blocks of about 2 KiB, each searched as one text; microseconds of 2 KiB, the median
/// of many passes.
double microseconds(const annotate::Detector& detector, const std::vector<std::string>& texts) {
    constexpr std::size_t block_bytes = 2048;
    constexpr int passes = 15;
    std::vector<std::string> blocks(1);
    for (const std::string& text : texts) {
        if (blocks.back().size() + text.size() > block_bytes && !blocks.back().empty())
            blocks.emplace_back();
        blocks.back() += text + "\n";
    }
    std::size_t bytes = 0;
    for (const std::string& block : blocks)
        bytes += block.size();
    std::vector<double> times;
    std::size_t found = 0;
    for (int pass = 0; pass < passes; ++pass) {
        const double start = processor_us();
        for (const std::string& block : blocks)
            found += detector.find(block).size();
        times.push_back((processor_us() - start) * block_bytes / static_cast<double>(bytes));
    }
    std::sort(times.begin(), times.end());
    std::fprintf(stderr, "%zu blocks, %zu findings\n", blocks.size(), found / passes);
    return times[times.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
    std::string model;
    if (count > 1 && std::strcmp(arguments[1], "-") != 0) {
        std::ifstream file(arguments[1], std::ios::binary);
        model.assign(std::istreambuf_iterator<char>(file), {});
    }
    annotate::DetectorOptions options;
    options.model = model;
    const auto detector = annotate::Detector::make(options);
    if (!detector) {
        std::fprintf(stderr, "bench_detect: %s\n", detector.error().message().c_str());
        return 1;
    }
    const std::vector<std::string> texts = read_texts();
    if (count > 2) {
        std::printf("%.2f\n", microseconds(**detector, texts));
        return 0;
    }
    for (const std::string& text : texts)
        print((*detector)->find(text));
    return 0;
}
