#pragma once
// What the tests of models share.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "seal/seal.h"

namespace molly::models::testing {

/// A data folder that goes away.
class TestFolder {
public:
    TestFolder()
        : path_(std::filesystem::temp_directory_path() /
                ("molly-models-" + seal::random_token(12))) {
        std::filesystem::create_directory(path_);
    }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;
    TestFolder(TestFolder&&) = delete;
    TestFolder& operator=(TestFolder&&) = delete;
    ~TestFolder() { std::filesystem::remove_all(path_); }
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

/// The model that the build generates.
inline std::filesystem::path test_model() {
    return MOLLY_TEST_MODEL;
}

inline std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace molly::models::testing
