#include "models/gguf.h"

#include <array>
#include <bit>
#include <cstring>
#include <sstream>

#include <gtest/gtest.h>

namespace molly::models {
namespace {

// Writes the pieces of a GGUF file by hand.
class Builder {
public:
    template <class Number>
    Builder& number(Number value) {
        std::array<char, sizeof(Number)> raw{};
        std::memcpy(raw.data(), &value, sizeof(Number));
        bytes_.append(raw.data(), raw.size());
        return *this;
    }
    Builder& text(std::string_view value) {
        number<std::uint64_t>(value.size());
        bytes_ += value;
        return *this;
    }
    Builder& header(std::uint64_t tensors, std::uint64_t values) {
        bytes_ += "GGUF";
        return number<std::uint32_t>(3).number(tensors).number(values);
    }
    Builder& value_u32(std::string_view key, std::uint32_t value) {
        return text(key).number<std::uint32_t>(4).number(value);
    }
    Builder& value_text(std::string_view key, std::string_view value) {
        return text(key).number<std::uint32_t>(8).text(value);
    }
    Builder& tensor(std::string_view name, std::uint64_t length, std::uint32_t type,
                    std::uint64_t offset) {
        return text(name).number<std::uint32_t>(1).number(length).number(type).number(offset);
    }
    Builder& pad_and_data(std::size_t count) {
        bytes_.resize((bytes_.size() + 31) / 32 * 32 + count);
        return *this;
    }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

Result<Gguf> parse(const std::string& bytes, const GgufLimits& limits = {}) {
    std::istringstream stream(bytes);
    return parse_gguf(stream, bytes.size(), limits);
}

Builder sound() {
    Builder file;
    file.header(2, 3)
        .value_text("general.architecture", "llama")
        .value_u32("llama.context_length", 4096);
    file.text("tokenizer.ggml.tokens").number<std::uint32_t>(9).number<std::uint32_t>(8);
    file.number<std::uint64_t>(2).text("a").text("bc");
    file.tensor("x", 64, 0, 0).tensor("y", 256, 12, 256);
    return file.pad_and_data(256 + 144);
}

TEST(Gguf, reads_values_and_tensors) {
    const auto gguf = parse(sound().bytes());
    ASSERT_TRUE(gguf) << gguf.error().message();
    EXPECT_EQ(gguf->text("general.architecture"), "llama");
    EXPECT_EQ(gguf->number("llama.context_length"), 4096U);
    EXPECT_EQ(gguf->values.at("tokenizer.ggml.tokens"), GgufValue(GgufArray{GgufType::string, 2}));
    ASSERT_EQ(gguf->tensors.size(), 2U);
    EXPECT_EQ(gguf->tensors[1].type, "q4_K");
    EXPECT_EQ(gguf->tensors[1].bytes, 144U);
    EXPECT_EQ(gguf->parameters(), 320U);
    EXPECT_EQ(gguf->quantization(), "f32");
}

TEST(Gguf, every_cut_is_corrupt) {
    const std::string whole = sound().bytes();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const auto gguf = parse(whole.substr(0, length));
        ASSERT_FALSE(gguf) << length;
        EXPECT_EQ(gguf.error().code(), ErrorCode::corrupt) << length;
    }
}

TEST(Gguf, every_changed_byte_is_read_or_refused) {
    const std::string whole = sound().bytes();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const int flip : {1, 0x80, 0xFF}) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ flip);
            (void)parse(changed);  // must neither crash nor allocate what the file claims
        }
    }
}

struct Wrong {
    const char* what;
    std::string bytes;
    ErrorCode code;
};

TEST(Gguf, refuses_what_lies) {
    const std::uint64_t huge = ~0ULL;
    const std::array cases = {
        Wrong{"magic", "GGML" + std::string(60, '\0'), ErrorCode::corrupt},
        Wrong{"values", Builder().header(0, huge).bytes(), ErrorCode::too_large},
        Wrong{"tensors", Builder().header(huge, 0).bytes(), ErrorCode::too_large},
        Wrong{"key length", Builder().header(0, 1).number(huge).bytes(), ErrorCode::corrupt},
        Wrong{"repeated key", Builder().header(0, 2).value_u32("a", 1).value_u32("a", 1).bytes(),
              ErrorCode::corrupt},
        Wrong{"alignment", Builder().header(0, 1).value_u32("general.alignment", 3).bytes(),
              ErrorCode::corrupt},
        Wrong{"tensor end", Builder().header(1, 0).tensor("x", 64, 0, 0).pad_and_data(255).bytes(),
              ErrorCode::corrupt},
        Wrong{"tensor place", Builder().header(1, 0).tensor("x", 8, 0, 8).pad_and_data(256).bytes(),
              ErrorCode::corrupt},
        Wrong{"tensor size", Builder().header(1, 0).tensor("x", huge / 4, 0, 0).bytes(),
              ErrorCode::corrupt},
        Wrong{"blocks", Builder().header(1, 0).tensor("x", 33, 2, 0).pad_and_data(64).bytes(),
              ErrorCode::corrupt},
        Wrong{"type", Builder().header(1, 0).tensor("x", 32, 99, 0).pad_and_data(64).bytes(),
              ErrorCode::unsupported},
        Wrong{"tensor twice",
              Builder()
                  .header(2, 0)
                  .tensor("x", 8, 0, 0)
                  .tensor("x", 8, 0, 0)
                  .pad_and_data(64)
                  .bytes(),
              ErrorCode::corrupt},
    };
    for (const auto& wrong : cases) {
        const auto gguf = parse(wrong.bytes);
        ASSERT_FALSE(gguf) << wrong.what;
        EXPECT_EQ(gguf.error().code(), wrong.code) << wrong.what;
    }
}

TEST(Gguf, keeps_to_its_limits) {
    GgufLimits limits;
    limits.string_bytes_max = 4;
    const auto gguf = parse(sound().bytes(), limits);
    ASSERT_FALSE(gguf);
    EXPECT_EQ(gguf.error().code(), ErrorCode::too_large);
}

TEST(Gguf, says_what_is_missing) {
    const auto gguf = read_gguf("/nowhere/at/all.gguf");
    ASSERT_FALSE(gguf);
    EXPECT_EQ(gguf.error().code(), ErrorCode::not_found);
}

TEST(Gguf, reads_the_generated_model) {
    const auto gguf = read_gguf(MOLLY_TEST_MODEL);
    ASSERT_TRUE(gguf) << gguf.error().message();
    EXPECT_EQ(gguf->text("general.name"), "molly-test");
    EXPECT_FALSE(gguf->text("tokenizer.chat_template").empty());
    EXPECT_GT(gguf->parameters(), 500'000U);
}

}  // namespace
}  // namespace molly::models
