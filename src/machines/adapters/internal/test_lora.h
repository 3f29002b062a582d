#pragma once
// What the tests of adapters share: GGUF LoRA files and PEFT folders written by hand.
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "seal/seal.h"

namespace molly::adapters::testing {

namespace fs = std::filesystem;

/// A data folder that goes away.
class TestFolder {
public:
    TestFolder() : path_(fs::temp_directory_path() / ("molly-adapters-" + seal::random_token(12))) {
        fs::create_directory(path_);
    }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;
    ~TestFolder() { fs::remove_all(path_); }
    const fs::path& path() const noexcept { return path_; }

private:
    fs::path path_;
};

inline fs::path test_model() {
    return MOLLY_TEST_MODEL;
}

inline void write_file(const fs::path& file, std::string_view bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string bytes_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

template <class Number>
void append(std::string& out, Number value) {
    std::array<char, sizeof(Number)> raw{};
    std::memcpy(raw.data(), &value, sizeof(Number));
    out.append(raw.data(), raw.size());
}

/// One factor; its numbers count up from `first` in steps of a thousandth.
struct TestTensor {
    std::string name;
    std::vector<std::uint64_t> shape;  // innermost first
    float first = 0;
};

inline std::string numbers(const TestTensor& tensor) {
    std::uint64_t elements = 1;
    for (const std::uint64_t length : tensor.shape)
        elements *= length;
    std::string out;
    for (std::uint64_t i = 0; i < elements; ++i)
        append(out, tensor.first + static_cast<float>(i % 100) / 1000);
    return out;
}

struct TestLora {
    std::string architecture = "llama";
    std::string type = "adapter";
    float alpha = 8;
    std::vector<TestTensor> tensors;

    static TestLora on(std::string_view weight, std::uint64_t in, std::uint64_t out,
                       std::uint64_t rank = 4, float first = 0) {
        TestLora lora;
        lora.add(weight, in, out, rank, first);
        return lora;
    }
    TestLora& add(std::string_view weight, std::uint64_t in, std::uint64_t out, std::uint64_t rank,
                  float first = 0) {
        tensors.push_back({std::string(weight) + ".lora_a", {in, rank}, first});
        tensors.push_back({std::string(weight) + ".lora_b", {rank, out}, first});
        return *this;
    }

    std::string bytes() const {
        std::string out = "GGUF";
        const auto text = [&](std::string_view value) {
            append<std::uint64_t>(out, value.size());
            out += value;
        };
        const auto value = [&](std::string_view key, std::string_view of) {
            text(key);
            append<std::uint32_t>(out, 8);
            text(of);
        };
        append<std::uint32_t>(out, 3);
        append<std::uint64_t>(out, tensors.size());
        append<std::uint64_t>(out, 4);
        value("general.type", type);
        value("general.architecture", architecture);
        value("adapter.type", "lora");
        text("adapter.lora.alpha");
        append<std::uint32_t>(out, 6);
        append(out, alpha);
        std::string data;
        for (const TestTensor& tensor : tensors) {
            text(tensor.name);
            append(out, static_cast<std::uint32_t>(tensor.shape.size()));
            for (const std::uint64_t length : tensor.shape)
                append(out, length);
            append<std::uint32_t>(out, 0);
            append<std::uint64_t>(out, data.size());
            data += numbers(tensor);
            data.resize((data.size() + 31) / 32 * 32);
        }
        out.resize((out.size() + 31) / 32 * 32);
        return out + data;
    }
};

/// A file with `lora` in it.
inline fs::path lora_file(const TestFolder& folder, const std::string& name, const TestLora& lora) {
    const fs::path file = folder.path() / name;
    write_file(file, lora.bytes());
    return file;
}

}  // namespace molly::adapters::testing
