#pragma once
// What is a text about, what does it ask for, and how hard is it? A linear model over hashed
// n-grams of words and characters, English and Italian. Pure after construction; safe from any
// thread.
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/capability.h"

namespace molly::profile {

/// What was read out of one text. Every share is a calibrated probability.
struct Reading {
    std::vector<float> topics;  ///< shape: [topics]
    domain::FieldShares fields{};
    std::array<float, domain::task_types> tasks{};
    float difficulty = 0.5F;
    float out_of_scope = 0;

    domain::TaskType task() const noexcept;
};

struct Topic {
    std::string name;
    domain::Field field = domain::Field::other;
};

class Classifier {
public:
    /// The model that travels in the binary. Errors: corrupt.
    static Result<std::shared_ptr<const Classifier>> built_in();
    /// From the bytes of a model file, which are copied. Errors: corrupt.
    static Result<std::shared_ptr<const Classifier>> make(std::string_view bytes);
    virtual ~Classifier() = default;

    /// Of a long text its beginning and its end are read (8 KiB together).
    virtual Reading read(std::string_view text) const = 0;
    virtual std::span<const Topic> topics() const noexcept = 0;
};

}  // namespace molly::profile
