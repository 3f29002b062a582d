#include <limits>

#include <gtest/gtest.h>

#include "domain/response.h"
#include "domain/target.h"
#include "domain/texts.h"
#include "domain/trace.h"

namespace molly::domain {
namespace {

using Places = std::set<std::string, std::less<>>;

Residency only(Places places) {
    return Residency(std::move(places));
}

TEST(Label, JoinTakesTheHigherClassTheIntersectionAndAllOrigins) {
    const Label a = {
        .sensitivity = Sensitivity::standard, .residency = only({"EU"}), .origins = {"member:ada"}};
    const Label b = {.sensitivity = Sensitivity::secret,
                     .residency = only({"IT", "US"}),
                     .origins = {"tool:mail"}};
    const Label both = join(a, b);
    EXPECT_EQ(both.sensitivity, Sensitivity::secret);
    EXPECT_EQ(both.residency, only({"IT"}));
    EXPECT_EQ(both.origins, (Places{"member:ada", "tool:mail"}));
    EXPECT_EQ(join(b, a), both);
    EXPECT_EQ(join(both, both), both);
    EXPECT_EQ(join(join(a, b), a), join(a, join(b, a)));
}

TEST(Label, UnlabelledIsPrivateAndAnywhere) {
    const Label label;
    EXPECT_EQ(label.sensitivity, Sensitivity::private_);
    EXPECT_FALSE(label.residency.constrained());
}

TEST(Label, ClassesPermitTheTiersOfTheTable) {
    EXPECT_EQ(to_string(tiers_of(Sensitivity::secret)), "T0");
    EXPECT_EQ(to_string(tiers_of(Sensitivity::private_)), "T0 T1");
    EXPECT_EQ(to_string(tiers_of(Sensitivity::standard)), "T0 T1 T2");
    EXPECT_EQ(to_string(tiers_of(Sensitivity::public_)), "T0 T1 T2");
}

struct Intersection {
    Places a;
    Places b;
    Places both;
};

TEST(Residency, IntersectsBoundariesAndTheUnion) {
    const Intersection cases[] = {
        {{"EU"}, {"IT"}, {"IT"}},
        {{"EU"}, {"IT", "US"}, {"IT"}},
        {{"EU", "US"}, {"EU"}, {"EU"}},
        {{"EU"}, {"EU", "IT"}, {"EU", "IT"}},
        {{"IT"}, {"FR"}, {}},
        {{"EU"}, {"CH"}, {}},
        {{"home-lan"}, {"home-lan", "IT"}, {"home-lan"}},
        {{"home-lan"}, {"EU"}, {}},
        {{}, {"EU"}, {}},
    };
    for (const Intersection& each : cases) {
        EXPECT_EQ(only(each.a).intersect(only(each.b)), only(each.both));
        EXPECT_EQ(only(each.b).intersect(only(each.a)), only(each.both));
    }
    EXPECT_EQ(Residency().intersect(only({"IT"})), only({"IT"}));
    EXPECT_EQ(only({"IT"}).intersect(Residency()), only({"IT"}));
    EXPECT_FALSE(Residency().intersect(Residency()).constrained());
}

TEST(Residency, AllowsPlacesInsideIt) {
    EXPECT_TRUE(only({"EU"}).allows({"IT"}));
    EXPECT_TRUE(only({"EU"}).allows({"EU"}));
    EXPECT_FALSE(only({"IT"}).allows({"EU"}));  // somewhere in the union is not Italy
    EXPECT_FALSE(only({"EU"}).allows({"US"}));
    EXPECT_FALSE(only({"EU"}).allows({}));  // an undeclared place
    EXPECT_TRUE(Residency().allows({}));
    EXPECT_TRUE(only({"home-lan"}).allows({"US", "home-lan"}));
    EXPECT_FALSE(only({}).allows({"IT"}));
    EXPECT_EQ(to_string(only({})), "nowhere");
    EXPECT_EQ(to_string(Residency()), "everywhere");
    EXPECT_EQ(to_string(only({"IT", "EU"})), "EU IT");
}

TEST(Money, IsExactAndPrintsWithoutTrailingZeros) {
    const std::pair<std::int64_t, std::string_view> cases[] = {
        {0, "0"},
        {1'234'567, "0.001234567"},
        {1'500'000'000, "1.5"},
        {-500'000'000, "-0.5"},
        {1'000'000'000, "1"},
        {std::numeric_limits<std::int64_t>::max(), "9223372036.854775807"}};
    for (const auto& [nano, text] : cases)
        EXPECT_EQ(to_string(Money{nano}), text);
    EXPECT_EQ(money_from(0.1).nano + money_from(0.2).nano, money_from(0.3).nano);
    EXPECT_EQ(money_from(2e-9).nano, 2);
}

// Case 6.
TEST(Money, CachedTokensAreBilledAtTheirOwnRate) {
    const Usage usage = {.prompt_tokens = 1000, .cached_tokens = 900, .answer_tokens = 10};
    const Prices prices = {
        .per_input_token = {100}, .per_cached_token = {10}, .per_answer_token = {7}};
    EXPECT_EQ(cost_of(usage, prices).nano, 100 * 100 + 900 * 10 + 10 * 7);
    const Usage odd = {.prompt_tokens = 5, .cached_tokens = 9, .answer_tokens = 0};
    EXPECT_EQ(cost_of(odd, prices).nano, 5 * 10);  // never more cached tokens than tokens
}

TEST(Response, IsBuiltFromItsDeltas) {
    ResponseBuilder builder;
    EXPECT_TRUE(builder.empty());
    Delta first;
    first.text = "Hel";
    first.tool_calls = {{.index = 1, .id = "b", .name = "g", .arguments = "{"},
                        {.index = 0, .id = "a", .name = "f", .arguments = "{}"}};
    Delta second;
    second.text = "lo";
    second.tool_calls = {{.index = 1, .id = "", .name = "", .arguments = "}"}};
    second.finish = FinishReason::length;
    second.usage = Usage{.prompt_tokens = 1, .answer_tokens = 2, .source = Usage::Source::engine};
    builder.add(first);
    builder.add(second);
    const Response response = builder.take();
    EXPECT_EQ(response.text.text(), "Hello");
    ASSERT_EQ(response.tool_calls.size(), 2U);
    EXPECT_EQ(response.tool_calls[0].name, "f");
    EXPECT_EQ(response.tool_calls[1].arguments.text(), "{}");
    EXPECT_EQ(response.finish, FinishReason::length);
    EXPECT_EQ(response.usage.answer_tokens, 2U);
}

TEST(Names, GoBothWays) {
    for (const Tier tier : all_tiers)
        EXPECT_EQ(tier_from(to_string(tier)), tier);
    for (const auto sensitivity :
         {Sensitivity::public_, Sensitivity::standard, Sensitivity::private_, Sensitivity::secret})
        EXPECT_EQ(sensitivity_from(to_string(sensitivity)), sensitivity);
    for (const auto mode : {Mode::balanced, Mode::quality, Mode::fast, Mode::cheap})
        EXPECT_EQ(mode_from(to_string(mode)), mode);
    for (const auto dialect : {Dialect::openai, Dialect::anthropic, Dialect::ollama})
        EXPECT_EQ(dialect_from(to_string(dialect)), dialect);
    EXPECT_EQ(tier_from("T4"), std::nullopt);
    EXPECT_EQ(sensitivity_from("Public"), std::nullopt);
}

TEST(Target, EndpointsAndPlacesAreSpelledOut) {
    Endpoint endpoint;
    endpoint.tls = true;
    endpoint.host = "api.example.org";
    endpoint.port = 443;
    endpoint.path = "/v1";
    EXPECT_EQ(to_string(endpoint), "https://api.example.org:443/v1");
    endpoint.host = "::1";
    EXPECT_EQ(to_string(endpoint), "https://[::1]:443/v1");
    TargetSpec spec;
    EXPECT_TRUE(spec.places().empty());
    spec.jurisdiction = "IT";
    spec.boundaries = {"home-lan"};
    EXPECT_EQ(spec.places(), (Places{"IT", "home-lan"}));
}

TEST(Finding, EveryKindHasAName) {
    for (std::size_t i = 0; i < finding_kinds; ++i) {
        const auto kind = static_cast<FindingKind>(i);
        EXPECT_EQ(finding_kind_from(to_string(kind)), kind) << to_string(kind);
    }
    EXPECT_EQ(finding_kind_from("unknown"), std::nullopt);
}

TEST(Texts, AreReadAndChangedInOneOrder) {
    Request request;
    request.messages = {text_message(Role::system, "one"), text_message(Role::user, "two")};
    request.messages[1].tool_calls = {{"id", "tool", Content("{}")}};
    request.tools = {{"tool", Content("does it"), Content("{}"), false}};
    request.metadata = {{"key", "value"}};
    std::vector<std::string> read;
    for_each_text(request, [&](const std::string& text, TextForm) { read.push_back(text); });
    std::vector<std::string> changed;
    change_each_text(request, [&](auto& text, TextForm form) {
        changed.push_back(text);
        if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>) {
            if (form == TextForm::plain && !text.empty()) text += "!";
        }
    });
    EXPECT_EQ(read, changed);
    EXPECT_EQ(text_of(request.messages[1]), "two!");
    EXPECT_EQ(request.metadata.at("key"), "value!");
}

}  // namespace
}  // namespace molly::domain
