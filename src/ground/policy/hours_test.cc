#include "policy/hours.h"

#include <gtest/gtest.h>

namespace molly::policy {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

WallTime utc(int year, unsigned month, unsigned day, int hour, int minute = 0) {
    return WallTime(std::chrono::sys_days(std::chrono::year(year) / std::chrono::month(month) /
                                          std::chrono::day(day))) +
           hours(hour) + minutes(minute);
}

TEST(Hours, HoldFromTheFirstMinuteToBeforeTheLast) {
    const auto office = hours_from("08:00-19:00", {}, "UTC");
    ASSERT_TRUE(office);
    EXPECT_FALSE(office->contains(utc(2026, 11, 30, 7, 59)));
    EXPECT_TRUE(office->contains(utc(2026, 11, 30, 8)));
    EXPECT_TRUE(office->contains(utc(2026, 11, 30, 18, 59)));
    EXPECT_FALSE(office->contains(utc(2026, 11, 30, 19)));
}

TEST(Hours, MayGoOverMidnight) {
    const auto night = hours_from("22:00-06:00", {}, "UTC");
    ASSERT_TRUE(night);
    EXPECT_TRUE(night->contains(utc(2026, 11, 30, 23)));
    EXPECT_TRUE(night->contains(utc(2026, 11, 30, 5, 59)));
    EXPECT_FALSE(night->contains(utc(2026, 11, 30, 12)));
}

TEST(Hours, WeekdaysAreThoseOfTheZone) {
    const auto monday = hours_from("", {"mon"}, "+02:00");
    ASSERT_TRUE(monday);
    EXPECT_TRUE(monday->contains(utc(2026, 11, 29, 22)));  // Sunday in UTC, Monday there
    EXPECT_FALSE(monday->contains(utc(2026, 11, 30, 22)));
}

TEST(Hours, EuropeanZonesKeepSummerTime) {
    const auto rome = hours_from("08:00-09:00", {}, "Europe/Rome");
    ASSERT_TRUE(rome);
    EXPECT_TRUE(rome->contains(utc(2026, 1, 15, 7)));
    EXPECT_TRUE(rome->contains(utc(2026, 7, 15, 6)));
    EXPECT_FALSE(rome->contains(utc(2026, 7, 15, 7)));
    // The clock changes on 29 March and 25 October 2026 at 01:00 UTC.
    const auto two = hours_from("02:00-03:00", {}, "Europe/Rome");
    EXPECT_FALSE(two->contains(utc(2026, 3, 29, 1)));
    EXPECT_TRUE(two->contains(utc(2026, 10, 25, 0, 30)));
    EXPECT_TRUE(two->contains(utc(2026, 10, 25, 1, 30)));
}

TEST(Hours, WhatIsNotUnderstoodIsRefused) {
    EXPECT_FALSE(hours_from("8-19", {}, "UTC"));
    EXPECT_FALSE(hours_from("08:00-08:00", {}, "UTC"));
    EXPECT_FALSE(hours_from("08:60-19:00", {}, "UTC"));
    EXPECT_FALSE(hours_from("08:00-19:00", {"monday"}, "UTC"));
    EXPECT_FALSE(hours_from("08:00-19:00", {}, ""));
    EXPECT_FALSE(hours_from("08:00-19:00", {}, "America/New_York"));
    EXPECT_FALSE(hours_from("08:00-19:00", {}, "+25:00"));
    EXPECT_TRUE(hours_from("00:00-24:00", {}, "-03:30"));
}

}  // namespace
}  // namespace molly::policy
