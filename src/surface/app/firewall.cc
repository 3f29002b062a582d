#include "app/firewall.h"

#include <algorithm>
#include <array>

#include <boost/url/parse.hpp>
#include <fmt/format.h>

#include "domain/texts.h"

namespace molly::app {
namespace {

using domain::Sensitivity;

constexpr std::array classes_below_secret = {Sensitivity::public_, Sensitivity::standard,
                                             Sensitivity::private_};

/// A request that meets the conditions of a rule, or of none.
domain::AnnotatedRequest request_for(const policy::Rule* rule, Sensitivity sensitivity) {
    domain::AnnotatedRequest annotated;
    annotated.label.sensitivity = sensitivity;
    annotated.detection_complete = true;
    domain::for_each_text(annotated.request, [&](const std::string&, domain::TextForm) {
        annotated.findings.emplace_back();
    });
    if (rule == nullptr) return annotated;
    domain::Request& request = annotated.request;
    if (!rule->members.empty()) request.caller.member = rule->members.front();
    if (!rule->apps.empty()) request.caller.app = rule->apps.front();
    request.extensions.tags = rule->tags;
    if (!rule->purposes.empty()) request.extensions.purpose = rule->purposes.front();
    if (!rule->conversations.empty()) annotated.conversation = rule->conversations.front();
    return annotated;
}

/// Every quarter of an hour of a week, when a rule asks for the time; else one moment.
std::vector<WallTime> moments_of(const policy::Options& options) {
    const bool timed = std::any_of(options.rules.begin(), options.rules.end(),
                                   [](const policy::Rule& rule) { return rule.hours.has_value(); });
    std::vector<WallTime> moments;
    const WallTime some_monday(std::chrono::days(20'002));
    for (int i = 0; i < (timed ? 7 * 24 * 4 : 1); ++i)
        moments.push_back(some_monday + i * std::chrono::minutes(15));
    return moments;
}

/// Whether any request at all could go there: the widest one, and for T3 one for each permit.
bool reachable(const policy::PolicyEngine& engine, const policy::Options& options,
               const domain::TargetSpec& target) {
    const std::vector<WallTime> moments = moments_of(options);
    const auto open_for = [&](domain::AnnotatedRequest annotated) {
        return std::any_of(moments.begin(), moments.end(), [&](WallTime moment) {
            annotated.time = moment;
            const auto permit = engine.decide(annotated);
            return permit && permit->check_form(target);
        });
    };
    const auto opens = [&](const policy::Rule* rule) {
        return std::any_of(classes_below_secret.begin(), classes_below_secret.end(),
                           [&](Sensitivity one) { return open_for(request_for(rule, one)); });
    };
    if (opens(nullptr)) return true;
    return std::any_of(options.rules.begin(), options.rules.end(),
                       [&](const policy::Rule& rule) { return opens(&rule); });
}

bool is_address(const std::string& host) {
    const bool six = host.find(':') != std::string::npos;
    const std::string authority = six ? "[" + host + "]" : host;
    const auto url = boost::urls::parse_uri("http://" + authority + "/");
    return url && (url->host_type() == boost::urls::host_type::ipv4 ||
                   url->host_type() == boost::urls::host_type::ipv6);
}

/// Root will load the file and paste its commands: nothing in it but plain words.
bool plain(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

std::string plain_words(const std::string& text) {
    std::string out = text.substr(0, 64);
    std::replace_if(out.begin(), out.end(), [](char c) { return !plain(c); }, '_');
    return out;
}

bool plain_host(const std::string& host) {
    return !host.empty() && host.front() != '-' && std::all_of(host.begin(), host.end(), plain);
}

std::string set_name(std::size_t index, int family) {
    return fmt::format("exit{}_v{}", index, family);
}

constexpr std::string_view opening = R"(#!/usr/sbin/nft -f
# The network exits of Molly, as `molly policy firewall` saw them in the configuration.
# Load it as root:            nft -f FILE         (check it first: nft -c -f FILE)
# Print it again after every change of targets or rules.
#
# What this is not:
# - Names are not looked up here. Each named exit below has two sets of addresses, empty until the
#   commands beside them fill them. A service's addresses change: fill the sets again from a timer,
#   and know that a provider's address may serve other sites as well.
# - Model downloads are closed unless their hosts were named (--download-host); they follow redirects,
#   so name the hosts of the delivery network too, or pull models as another user.
# - It counts on Molly having a user of its own; whatever else runs as that user is bound as well.
# - Name lookups go to whatever resolver this machine uses, so queries to port 53 stay open.
)";

void add_sets(const std::vector<Exit>& exits, std::string& out) {
    for (std::size_t i = 0; i < exits.size(); ++i) {
        if (exits[i].address) continue;
        if (!plain_host(exits[i].host)) {
            out += fmt::format("    # {}: left out, its host is no host name\n",
                               plain_words(exits[i].name));
            continue;
        }
        out += fmt::format("    # {} ({}): {}\n", plain_words(exits[i].name),
                           to_string(exits[i].tier), exits[i].host);
        for (const int family : {4, 6}) {
            out += fmt::format(
                "    #   for a in $(getent ahostsv{0} {1} | awk '{{print $1}}' | sort -u); do "
                "nft add element inet molly {2} \"{{ $a }}\"; done\n",
                family, exits[i].host, set_name(i, family));
        }
        out += fmt::format("    set {} {{ type ipv4_addr; }}\n", set_name(i, 4));
        out += fmt::format("    set {} {{ type ipv6_addr; }}\n", set_name(i, 6));
    }
}

void add_rules(const std::vector<Exit>& exits, std::string& out) {
    for (std::size_t i = 0; i < exits.size(); ++i) {
        const Exit& exit = exits[i];
        const auto rule = [&](std::string_view family, const std::string& where) {
            out +=
                fmt::format("        {} daddr {} tcp dport {} accept comment \"{} {}\"\n", family,
                            where, exit.port, to_string(exit.tier), plain_words(exit.name));
        };
        const bool six = exit.host.find(':') != std::string::npos;
        if (exit.address) {
            rule(six ? "ip6" : "ip", exit.host);
        } else if (plain_host(exit.host)) {
            rule("ip", "@" + set_name(i, 4));
            rule("ip6", "@" + set_name(i, 6));
        }
    }
}

}  // namespace

std::vector<Exit> exits_of(const Config& config, const std::vector<std::string>& download_hosts) {
    const policy::PolicyEngine engine(config.policy);
    std::vector<Exit> exits;
    for (const auto& target : config.targets) {
        if (target->tier == domain::Tier::t0 && is_address(target->endpoint.host) &&
            target->endpoint.host.starts_with("127."))
            continue;  // this machine is open anyway
        if (!reachable(engine, config.policy, *target)) continue;
        exits.push_back({.name = target->id,
                         .tier = target->tier,
                         .host = target->endpoint.host,
                         .port = target->endpoint.port,
                         .address = is_address(target->endpoint.host)});
    }
    for (const std::string& host : download_hosts)
        exits.push_back({.name = "models",
                         .tier = domain::Tier::t3,
                         .host = host,
                         .port = 443,
                         .address = is_address(host)});
    return exits;
}

std::string nftables_of(const std::vector<Exit>& exits, std::uint32_t user) {
    std::string out(opening);
    out += "table inet molly\ndelete table inet molly\ntable inet molly {\n";
    add_sets(exits, out);
    out += fmt::format(
        "    chain output {{\n"
        "        type filter hook output priority filter; policy accept;\n"
        "        meta skuid != {} accept\n"
        "        oifname \"lo\" accept\n"
        "        ct state established,related accept\n"
        "        meta l4proto {{ tcp, udp }} th dport 53 accept comment \"name lookups\"\n",
        user);
    add_rules(exits, out);
    out += "        counter reject with icmpx type admin-prohibited\n    }\n}\n";
    return out;
}

}  // namespace molly::app
