#include <memory>

#include <fmt/format.h>

#include "app/commands.h"

namespace molly::app {
namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words)
        out += (out.empty() ? "" : " ") + word;
    return out;
}

std::string bash_script(const std::vector<Words>& nodes) {
    std::string out =
        "# bash completion for molly: source <(molly completion bash)\n"
        "_molly() {\n"
        "    local path='' word\n"
        "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
        "        [[ $word == -* ]] || path=\"${path:+$path }$word\"\n"
        "    done\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} words=''\n"
        "    case $path in\n";
    for (const Words& node : nodes)
        out += fmt::format("        '{}') words='{}' ;;\n", node.path, joined(node.words));
    out +=
        "    esac\n"
        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
        "    ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
        "}\n"
        "complete -F _molly molly\n";
    return out;
}

std::string zsh_script(const std::vector<Words>& nodes) {
    std::string out =
        "#compdef molly\n"
        "# zsh completion for molly: source <(molly completion zsh)\n"
        "_molly() {\n"
        "    local path_words='' word\n"
        "    for word in ${words[2,CURRENT-1]}; do\n"
        "        [[ $word == -* ]] || path_words=\"${path_words:+$path_words }$word\"\n"
        "    done\n"
        "    case $path_words in\n";
    for (const Words& node : nodes)
        out += fmt::format("        '{}') compadd -- {} ;;\n", node.path, joined(node.words));
    out +=
        "        *) _files ;;\n"
        "    esac\n"
        "}\n"
        "compdef _molly molly\n";
    return out;
}

std::string fish_script(const std::vector<Words>& nodes) {
    std::string out =
        "# fish completion for molly: molly completion fish | source\n"
        "function __molly_path\n"
        "    string join ' ' (string match -v -- '-*' (commandline -opc)[2..])\n"
        "end\n";
    for (const Words& node : nodes) {
        out += fmt::format("complete -c molly -n 'test (__molly_path) = \"{}\"' -a '{}'\n",
                           node.path, joined(node.words));
    }
    return out;
}

}  // namespace

void add_completion(Command& root) {
    Command command = root.add(
        "completion", {"Print completion for a shell", "Stampa il completamento per una shell"});
    const auto shell = std::make_shared<std::string>();
    constexpr std::string_view examples =
        "  source <(molly completion bash)\n"
        "  molly completion fish > ~/.config/fish/completions/molly.fish\n";
    command.argument("shell", *shell, {"bash, zsh, fish", "bash, zsh, fish"})
        .examples({examples, examples});
    command.run([root, shell] {
        const Terminal& terminal = root.general().terminal;
        const std::vector<Words> nodes = root.tree();
        if (*shell == "bash") {
            terminal.raw(bash_script(nodes));
        } else if (*shell == "zsh") {
            terminal.raw(zsh_script(nodes));
        } else if (*shell == "fish") {
            terminal.raw(fish_script(nodes));
        } else {
            return finish(root.general(),
                          fail(Error(ErrorCode::invalid_request, "there are bash, zsh and fish")
                                   .italian("ci sono bash, zsh e fish")));
        }
        return exit_done;
    });
}

}  // namespace molly::app
