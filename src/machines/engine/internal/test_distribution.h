#pragma once
// Whether two samples of answers come from one distribution.
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace molly::engine::testing {

/// The chi-square test of homogeneity over the eight answers of three letters, a or b, that a
/// grammar allows. Both samples are of one size.
inline void expect_one_distribution(std::map<std::string, double> expected,
                                    std::map<std::string, double> got) {
    EXPECT_GE(expected.size(), 6U) << "one answer alone proves nothing";
    double statistic = 0;
    for (const char a : {'a', 'b'}) {
        for (const char b : {'a', 'b'}) {
            for (const char c : {'a', 'b'}) {
                const std::string text = {a, b, c};
                const double sum = expected[text] + got[text];
                if (sum > 0) statistic += std::pow(expected[text] - got[text], 2) / sum;
            }
        }
    }
    EXPECT_LT(statistic, 24.3) << "0.1% of such samples of one distribution are further apart";
}

}  // namespace molly::engine::testing
