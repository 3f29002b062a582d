#include "annotate/internal/features.h"

namespace molly::annotate {
namespace {

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t x = a * 0x9e3779b97f4a7c15U + b;
    x ^= x >> 29U;
    x *= 0xbf58476d1ce4e5b9U;
    return x ^ (x >> 32U);
}

/// Beyond both ends of a text.
const Word& outside() noexcept {
    static const Word word = [] {
        Word made;
        made.shape = Shape{1};
        made.hash = 1;
        return made;
    }();
    return word;
}

/// The words around one, with what the features ask of them.
class Around {
public:
    Around(std::span<const Word> words, std::size_t at) : words_(words), at_(at) {}

    const Word& operator()(int offset) const noexcept {
        const auto place = static_cast<std::ptrdiff_t>(at_) + offset;
        if (place < 0 || place >= static_cast<std::ptrdiff_t>(words_.size())) return outside();
        return words_[static_cast<std::size_t>(place)];
    }

private:
    std::span<const Word> words_;
    std::size_t at_;
};

std::uint64_t shape(const Word& word) noexcept {
    return static_cast<std::uint64_t>(word.shape);
}

bool is_number(const Word& word) noexcept {
    return word.shape >= Shape::digits_1 && word.shape <= Shape::alnum;
}

/// Whether words of addresses or numbers stand within four words, and on which side.
std::uint64_t surroundings(const Around& around) noexcept {
    std::uint64_t bits = 0;
    for (int i = 1; i <= 4; ++i) {
        const Word& left = around(-i);
        const Word& right = around(i);
        if ((left.classes & street) != 0) bits |= 1U;
        if ((right.classes & street) != 0) bits |= 2U;
        if (is_number(left)) bits |= 4U;
        if (is_number(right)) bits |= 8U;
        if (i > 2) continue;
        if (left.shape == Shape::line) bits |= 16U;
        if (right.shape == Shape::line) bits |= 32U;
        if ((left.classes & title) != 0) bits |= 64U;
        if ((right.classes & company) != 0) bits |= 128U;
    }
    return bits;
}

}  // namespace

void features_of(std::span<const Word> words, std::size_t at, Features& features) noexcept {
    const Around around(words, at);
    const Word& w = around(0);
    const Word& l1 = around(-1);
    const Word& l2 = around(-2);
    const Word& r1 = around(1);
    const Word& r2 = around(2);
    const std::uint64_t s = shape(w);
    const std::uint64_t sl = shape(l1);
    const std::uint64_t sr = shape(r1);
    const std::uint64_t first = w.first ? 1 : 0;
    const std::uint64_t near = surroundings(around);
    std::size_t next = 0;
    const auto put = [&](std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
        features[next] = mix(mix(mix(next + 1, a), b), c);
        ++next;
    };
    put(w.hash);
    put(w.hash, s);
    put(l1.hash);
    put(r1.hash);
    put(l2.hash, sl);
    put(r2.hash, sr);
    put(l1.hash, w.hash);
    put(w.hash, r1.hash);
    put(l1.hash, r1.hash, s);
    put(l2.hash, l1.hash, s);
    put(r1.hash, r2.hash, s);
    put(l1.hash, s, w.classes);
    put(r1.hash, s, w.classes);
    put(s, sl, shape(l2));
    put(s, sr, shape(r2));
    put(s, sl, sr);
    put(w.prefix, s);
    put(w.suffix_2, s);
    put(w.suffix_3, s);
    put(w.suffix_4, s);
    put(w.classes, s, first);
    put(w.classes, l1.classes, s * 512 + sl);
    put(w.classes, r1.classes, s * 512 + sr);
    put(w.classes, l1.classes, r1.classes);
    put(l2.classes, l1.classes, w.classes);
    put(w.classes, r1.classes, r2.classes);
    put(s, first, near);
    put(w.classes, near, sl * 512 + sr);
    put(around(-3).hash, s);
    put(around(3).hash, s);
    put(l1.suffix_3, s, w.suffix_2);
    put(w.suffix_3, r1.suffix_3);
    put(s, sl * 512 + sr, shape(l2) * 512 + shape(r2));
    static_assert(features_per_word == 33);
}

}  // namespace molly::annotate
