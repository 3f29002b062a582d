#pragma once
// A folder of small tasks that lives as long as one test.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace molly::evaluate {

class TestTasks {
public:
    TestTasks() {
        std::string pattern = (std::filesystem::temp_directory_path() / "molly-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    TestTasks(const TestTasks&) = delete;
    TestTasks& operator=(const TestTasks&) = delete;
    TestTasks(TestTasks&&) = delete;
    TestTasks& operator=(TestTasks&&) = delete;
    ~TestTasks() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    const std::filesystem::path& folder() const { return folder_; }

    /// A task of four questions with two possible answers.
    void write(const std::string& name) const {
        const auto place = folder_ / name;
        std::filesystem::create_directory(place);
        std::ofstream(place / "task.json") << R"({"name":"x","title":"T","licence":"MIT","schema":)"
                                           << R"({"type":"string","enum":["red","green"]}})";
        std::ofstream(place / "held_out.jsonl")
            << row("fire", "red", "new") << row("grass", "green", "known")
            << row("blood", "red", "known") << row("leaf", "green", "known");
        std::ofstream(place / "train.jsonl")
            << row("rose", "red", "known") << row("tree", "green", "known")
            << row("ruby", "red", "known");
    }

private:
    static std::string row(std::string_view asked, std::string_view answer,
                           std::string_view slice) {
        std::string text = R"({"messages":[{"role":"system","content":"Which colour?"},)";
        text += R"({"role":"user","content":")" + std::string(asked) + "\"},";
        text += R"({"role":"assistant","content":"\")" + std::string(answer) + R"(\""}],)";
        text += R"("class":"public","slice":")" + std::string(slice) + "\"}\n";
        return text;
    }

    std::filesystem::path folder_;
};

}  // namespace molly::evaluate
