// planner: completion scripts and the manual page, both made from the options that the program reads
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <servecap/core/text.hpp>
#include <servecap/version.hpp>

#include "output.hpp"

namespace planner {

using namespace servecap;

namespace {

/// The words of "text|json|csv"; none for other values.
std::vector<std::string> choices_of(std::string const& value) {
    std::vector<std::string> out;
    if (value.find('|') == std::string::npos) return out;
    for (std::size_t at = 0; at <= value.size();) {
        auto const end = std::min(value.find('|', at), value.size());
        out.push_back(value.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

/// What a value can be, beyond words: the catalogue's names come from the program itself.
enum class Values { none, words, models, gpus, files };
Values values_of(OptionHelp const& o) {
    auto const is = [&](char const* n) { return std::find(o.names.begin(), o.names.end(), n) != o.names.end(); };
    if (o.value.empty()) return Values::none;
    if (!choices_of(o.value).empty()) return Values::words;
    if (is("--model") || is("--models")) return Values::models;
    if (is("--gpu") || is("--gpus")) return Values::gpus;
    return Values::files;
}

std::string joined(std::vector<std::string> const& list, std::string_view by) {
    std::string s;
    for (auto const& x : list) s += (s.empty() ? "" : std::string{by}) + x;
    return s;
}

std::string first_words(std::string const& command) {
    if (command == "list") return "models gpus prices apis benchmarks startups setups engines";
    if (command == "validate") return "benchmarks startups";
    if (command == "completion") return "bash zsh fish man";
    return {};
}

constexpr char const* kModels = "planner list models --format csv 2>/dev/null | tail -n +2 | cut -d, -f1";
constexpr char const* kGpus = "planner list gpus --format csv 2>/dev/null | tail -n +2 | cut -d, -f1";

std::string bash_script(std::vector<CommandHelp> const& commands) {
    std::string names, options, words, with_value;
    std::map<std::string, std::string> choice; // option -> words
    for (CommandHelp const& c : commands) {
        if (!c.name.empty()) names += (names.empty() ? "" : " ") + c.name;
        std::string all;
        for (OptionHelp const& o : c.options) {
            for (auto const& n : o.names) all += (all.empty() ? "" : " ") + n;
            if (values_of(o) == Values::words) choice[joined(o.names, "|")] = joined(choices_of(o.value), " ");
        }
        options += "        " + (c.name.empty() ? std::string{"''"} : c.name) + ") options='" + all + "' ;;\n";
        if (std::string const w = first_words(c.name); !w.empty()) words += "            " + c.name + ") options='" + w + "' ;;\n";
    }
    std::string choices;
    for (auto const& [names_of, list] : choice) choices += "        " + names_of + ") COMPREPLY=($(compgen -W '" + list + "' -- \"$cur\")); return ;;\n";
    return "# bash completion of planner " SERVECAP_VERSION "\n"
           "_planner() {\n"
           "    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" command='' options='' i\n"
           "    case \"${COMP_WORDS[1]}\" in -*) ;; *) [ \"$COMP_CWORD\" -gt 1 ] && command=\"${COMP_WORDS[1]}\" ;; esac\n"
           "    case \"$prev\" in\n" +
           choices +
           "        -m|--model|--models) COMPREPLY=($(compgen -W \"$(" + kModels + ")\" -- \"$cur\") $(compgen -f -- \"$cur\")); return ;;\n"
           "        -g|--gpu|--gpus) COMPREPLY=($(compgen -W \"$(" + kGpus + ") any\" -- \"$cur\")); return ;;\n"
           "    esac\n"
           "    case \"$cur\" in\n"
           "        -*) ;;\n"
           "        *)  [ \"$COMP_CWORD\" -eq 1 ] && { COMPREPLY=($(compgen -W '" + names + "' -- \"$cur\")); return; }\n"
           "            case \"$command\" in\n" + words +
           "            *) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
           "            esac\n"
           "            COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")); return ;;\n"
           "    esac\n"
           "    case \"$command\" in\n" + options +
           "    esac\n"
           "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
           "}\n"
           "complete -o filenames -F _planner planner\n";
}

/// Text within single quotes of a shell.
std::string shell_quoted(std::string_view s) {
    std::string out = "'";
    for (char c : s) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
    return out + "'";
}

std::string zsh_script(std::vector<CommandHelp> const& commands) {
    auto const escape = [](std::string_view s) {
        std::string out;
        for (char c : s) {
            if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
            out += c;
        }
        return out;
    };
    std::string out = "#compdef planner\n# zsh completion of planner " SERVECAP_VERSION "\n"
                      "_planner_models() { local -a m; m=(${(f)\"$(" + std::string{kModels} + ")\"}); compadd -a m; _files }\n"
                      "_planner_gpus() { local -a g; g=(${(f)\"$(" + std::string{kGpus} + ")\"} any); compadd -a g }\n"
                      "_planner() {\n    local -a commands options\n    commands=(\n";
    for (CommandHelp const& c : commands)
        if (!c.name.empty()) out += "        " + shell_quoted(c.name + ":" + escape(c.text)) + "\n";
    out += "    )\n    case \"$words[2]\" in\n";
    auto const list = [&](CommandHelp const& c) {
        std::string s;
        for (OptionHelp const& o : c.options)
            for (auto const& n : o.names) {
                std::string spec = n + "[" + escape(o.help) + "]";
                switch (values_of(o)) {
                case Values::none: break;
                case Values::words: spec += ":value:(" + joined(choices_of(o.value), " ") + ")"; break;
                case Values::models: spec += ":model:_planner_models"; break;
                case Values::gpus: spec += ":gpu:_planner_gpus"; break;
                case Values::files: spec += ":" + to_lower(o.value.substr(0, o.value.find(' '))) + ":_files"; break;
                }
                s += "            " + shell_quoted(spec) + "\n";
            }
        std::string const w = first_words(c.name);
        s += "            " + shell_quoted(w.empty() ? std::string{"*:file:_files"} : "*:what:(" + w + ")") + "\n";
        return s;
    };
    CommandHelp const* root = nullptr;
    for (CommandHelp const& c : commands) {
        if (c.name.empty()) {
            root = &c;
            continue;
        }
        out += "        " + c.name + ") shift words; (( CURRENT-- )); options=(\n" + list(c) + "        ) ;;\n";
    }
    if (root != nullptr) out += "        *) (( CURRENT == 2 )) && _describe command commands\n           options=(\n" + list(*root) + "        ) ;;\n";
    out += "    esac\n    _arguments -s $options\n}\n_planner \"$@\"\n";
    return out;
}

std::string fish_script(std::vector<CommandHelp> const& commands) {
    std::string out = "# fish completion of planner " SERVECAP_VERSION "\n";
    std::string names;
    for (CommandHelp const& c : commands)
        if (!c.name.empty()) names += (names.empty() ? "" : " ") + c.name;
    for (CommandHelp const& c : commands) {
        std::string const when =
            c.name.empty() ? "'not __fish_seen_subcommand_from " + names + "'" : "'__fish_seen_subcommand_from " + c.name + "'";
        if (!c.name.empty())
            out += "complete -c planner -n 'not __fish_seen_subcommand_from " + names + "' -a " + c.name + " -d " + shell_quoted(c.text) + "\n";
        if (std::string const w = first_words(c.name); !w.empty()) out += "complete -c planner -f -n " + when + " -a " + shell_quoted(w) + "\n";
        for (OptionHelp const& o : c.options) {
            std::string line = "complete -c planner -n " + when;
            for (auto const& n : o.names) line += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
            line += " -d " + shell_quoted(o.help);
            switch (values_of(o)) {
            case Values::none: break;
            case Values::words: line += " -x -a " + shell_quoted(joined(choices_of(o.value), " ")); break;
            case Values::models: line += " -r -a " + shell_quoted("(" + std::string{kModels} + ")"); break;
            case Values::gpus: line += " -x -a " + shell_quoted("(" + std::string{kGpus} + ")"); break;
            case Values::files: line += " -r"; break;
            }
            out += line + "\n";
        }
    }
    return out;
}

/// Text as troff takes it.
std::string roff(std::string_view s) {
    std::string out;
    for (char c : s) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
            out += c;
        }
    }
    return out;
}

std::string manual(std::vector<CommandHelp> const& commands) {
    std::string out = ".TH PLANNER 1 \"\" \"servecap " SERVECAP_VERSION "\" \"User Commands\"\n"
                      ".SH NAME\nplanner \\- capacity and cost planning for serving large language models\n"
                      ".SH SYNOPSIS\n.B planner\n\\fB\\-\\-model\\fR M \\fB\\-\\-gpu\\fR G [options]\n.br\n.B planner\nCOMMAND [options] [files]\n"
                      ".SH DESCRIPTION\nSays whether a model fits on GPUs, whether the engine will start and which flag mends it, how many tokens of\n"
                      "KV cache there are, how fast it will be, what a million tokens cost and when that beats an API. Every number has a basis\n"
                      "(measured, calibrated, assumed...), an interval where it is an estimate, and a source that \\fBplanner explain\\fR prints.\n"
                      ".SH COMMANDS\n";
    for (CommandHelp const& c : commands)
        if (!c.name.empty()) out += ".TP\n.B " + roff(c.name) + "\n" + roff(c.text) + "\n";
    auto const options = [&](CommandHelp const& c, std::vector<OptionHelp> const& without) {
        std::string group;
        for (OptionHelp const& o : c.options) {
            bool const known = std::any_of(without.begin(), without.end(), [&](OptionHelp const& x) { return x.names == o.names; });
            if (known || o.names.empty()) continue;
            if (o.group != group && without.empty()) {
                group = o.group;
                out += ".SS " + roff(group == "Options" ? "General" : group) + "\n";
            }
            std::string names;
            for (auto const& n : o.names) names += (names.empty() ? "" : ", ") + std::string{"\\fB"} + roff(n) + "\\fR";
            out += ".TP\n" + names + (o.value.empty() ? "" : " " + roff(o.value)) + "\n" + roff(o.help) + "\n";
        }
    };
    std::vector<OptionHelp> shared;
    for (CommandHelp const& c : commands)
        if (c.name.empty()) {
            out += ".SH OPTIONS\n";
            for (OptionHelp const& o : c.options)
                if (o.group != "Of this command") shared.push_back(o);
            options(c, {});
        }
    for (CommandHelp const& c : commands) {
        if (c.name.empty() || std::none_of(c.options.begin(), c.options.end(), [](OptionHelp const& o) { return o.group == "Of this command"; })) continue;
        out += ".SS Of planner " + roff(c.name) + "\n";
        options(c, shared);
    }
    out += ".SH EXAMPLES\n";
    for (CommandHelp const& c : commands)
        for (std::string const& e : c.examples) out += ".PP\n.nf\n" + roff(e) + "\n.fi\n";
    out += ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colour on a terminal, unless \\fB\\-\\-color always\\fR asks for it.\n"
           ".SH EXIT STATUS\n.TP\n0\nanswered\n.TP\n1\nanswered with no: it does not start, does not fit, or nothing meets the target\n"
           ".TP\n2\nwrong use or bad input\n.TP\n3\na fault of the program\n";
    return out;
}

} // namespace

Result<int> run_completion(Args const& a) {
    std::vector<std::string> const shells{"bash", "zsh", "fish", "man"};
    if (a.positional.size() != 1) return fail(ErrorCode::bad_usage, "no shell named", "planner completion", "bash, zsh, fish or man");
    auto const commands = describe_commands();
    std::string text;
    if (a.positional[0] == "bash")
        text = bash_script(commands);
    else if (a.positional[0] == "zsh")
        text = zsh_script(commands);
    else if (a.positional[0] == "fish")
        text = fish_script(commands);
    else if (a.positional[0] == "man")
        text = manual(commands);
    else {
        auto hint = did_you_mean(a.positional[0], shells);
        return fail(ErrorCode::unknown_name, "'" + a.positional[0] + "' is no shell that is known", "planner completion", hint.empty() ? "bash, zsh, fish or man" : hint);
    }
    auto done = emit(a, text);
    if (!done) return tl::unexpected<Error>{done.error()};
    return kAnswered;
}

} // namespace planner
