#include <functional>
#include <map>

#include "scenarios/scenario.h"

namespace molly::scenarios {
namespace {

using domain::Content;
using domain::Request;
using domain::Role;

using Reader = std::function<Result<void>(const Line&, Request&)>;

Reader turn(Role role) {
    return [role](const Line& line, Request& request) -> Result<void> {
        request.messages.push_back(domain::text_message(role, line.rest));
        return {};
    };
}

Result<void> read_class(const Line& line, Request& request) {
    request.extensions.sensitivity = domain::sensitivity_from(line.rest);
    if (!request.extensions.sensitivity)
        return fail(at_line(line.number, "no class is called " + line.rest));
    return {};
}

Result<void> read_mode(const Line& line, Request& request) {
    request.extensions.mode = domain::mode_from(line.rest);
    if (!request.extensions.mode)
        return fail(at_line(line.number, "no mode is called " + line.rest));
    return {};
}

Result<void> read_metadata(const Line& line, Request& request) {
    const auto equals = line.rest.find('=');
    if (equals == std::string::npos)
        return fail(at_line(line.number, "say `metadata: key = value`"));
    request.metadata[trim(line.rest.substr(0, equals))] = trim(line.rest.substr(equals + 1));
    return {};
}

/// `length: 40000 tokens`: the last turn is padded to about so many.
Result<void> read_length(const Line& line, Request& request) {
    const std::size_t tokens = count_from(line.rest).value_or(0);
    if (tokens == 0 || tokens > 1'000'000)
        return fail(at_line(line.number, "say `length: 9000 tokens`"));
    request.messages.push_back(domain::text_message(Role::user, std::string(tokens * 7 / 2, 'x')));
    return {};
}

Result<void> read_cost(const Line& line, Request& request) {
    const auto cost = number_from(line.rest);
    if (!cost) return fail(at_line(line.number, "say `cost at most: 0.01`"));
    request.extensions.cost_max = domain::money_from(*cost);
    return {};
}

Result<void> read_answer(const Line& line, Request& request) {
    request.sampling.answer_tokens_max = count_from(line.rest);
    if (!request.sampling.answer_tokens_max)
        return fail(at_line(line.number, "say `answer at most: 200`"));
    return {};
}

Result<void> read_needs(const Line& line, Request& request) {
    if (line.rest != "tools") return fail(at_line(line.number, "say `needs: tools`"));
    domain::Tool tool;
    tool.name = "look_up";
    request.tools.push_back(std::move(tool));
    return {};
}

const std::map<std::string, Reader, std::less<>>& readers() {
    static const std::map<std::string, Reader, std::less<>> all = {
        {"system", turn(Role::system)},
        {"user", turn(Role::user)},
        {"assistant", turn(Role::assistant)},
        {"tool result", turn(Role::tool)},
        {"class", read_class},
        {"mode", read_mode},
        {"metadata", read_metadata},
        {"length", read_length},
        {"needs", read_needs},
        {"stream",
         [](const Line& line, Request& request) -> Result<void> {
             request.stream = line.rest == "yes";
             return {};
         }},
        {"model",
         [](const Line& line, Request& request) -> Result<void> {
             request.model = line.rest;
             return {};
         }},
        {"stay in",
         [](const Line& line, Request& request) -> Result<void> {
             const auto names = split(line.rest, ' ');
             request.extensions.residency = domain::Residency({names.begin(), names.end()});
             return {};
         }},
        {"tag",
         [](const Line& line, Request& request) -> Result<void> {
             request.extensions.tags.push_back(line.rest);
             return {};
         }},
        {"conversation",
         [](const Line& line, Request& request) -> Result<void> {
             request.extensions.conversation = line.rest;
             return {};
         }},
        {"cost at most", read_cost},
        {"answer at most", read_answer},
        {"embed", [](const Line& line, Request& request) -> Result<void> {
             request.operation = domain::Operation::embed;
             request.inputs.emplace_back(line.rest);
             return {};
         }}};
    return all;
}

}  // namespace

Result<void> read_request(const std::vector<Line>& lines, domain::Request& request) {
    for (const Line& line : lines) {
        const auto reader = readers().find(line.word);
        if (reader == readers().end())
            return fail(at_line(line.number, "a request has no part `" + line.word + "`"));
        TRY_DO(reader->second(line, request));
    }
    return {};
}

}  // namespace molly::scenarios
