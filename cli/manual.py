#!/usr/bin/env python3
"""Writes qkv's man pages and its completions for bash, zsh and fish from what `qkv COMMAND --help` prints.

Usage: manual.py PROGRAM FOLDER DATA

FOLDER becomes a share folder: man/man1/*.1.gz, bash-completion, zsh, fish. DATA is the folder that configs and data are installed
in, for the pages to name. Equal help gives equal bytes.
"""
import dataclasses
import gzip
import pathlib
import re
import subprocess
import sys

COLUMN = 30  # where CLI11 begins the help of an option; on the next line when the option is longer
SUMMARY_END = re.compile(r"[;:(\[]")

EXAMPLES = """\
Train on the installed data, look at the attention, and make a page of it:

    qkv train {data}/configs/bank.toml
    qkv attend runs/bank "He swam to the bank."
    qkv report runs/bank
"""
EXIT_CODES = (("0", "done"), ("1", "it failed: a damaged file, an I/O error, a failed probe where asked"),
              ("2", "wrong use: an option, a config or data"), ("129, 130, 143, 152", "stopped by a signal, after a checkpoint"))
ENVIRONMENT = (("QKV_CPU", "build to run, x86-64-v2, x86-64-v3 or x86-64-v4, instead of the best for this processor"),)


@dataclasses.dataclass
class Option:
    flags: list
    value: str  # FILE, FOLDER, MODEL, KEY=VALUE, a|b, ...; empty for a flag
    note: str  # what stands behind the value: a range, ..., (required)
    help: str

    @property
    def is_repeated(self):
        return "..." in self.note

    @property
    def summary(self):
        return SUMMARY_END.split(self.help)[0].strip()


@dataclasses.dataclass
class Help:
    """What --help prints of the program or a command."""
    name: str  # "qkv train"
    summary: str
    usage: str
    arguments: list  # (name, help)
    options: list
    commands: list  # (name, help)
    text: list  # paragraphs behind the options
    lists: list  # (title, [(term, help)]) behind the options


def items(lines):
    """The (term, help) of a section's lines."""
    lines = list(lines)
    found = []
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith(" " * COLUMN):
            found[-1] = (found[-1][0], line.strip())
        elif following.startswith(" " * COLUMN):
            found.append((line.strip(), ""))
        else:
            found.append((line[:COLUMN].strip(), line[COLUMN:].strip()))
    return found


def option_of(term, text):
    flags, _, rest = term.partition(" ")
    value, _, note = rest.partition(" ")
    return Option(flags.split(","), value, note, text)


def parsed(name, text):
    blocks = [block.split("\n") for block in re.split(r"\n{2,}", text.strip("\n"))]
    (summary, usage), blocks = blocks[0][-2:], blocks[1:]
    found = Help(name, summary, usage.removeprefix("Usage: "), [], [], [], [], [])
    for title, *lines in blocks:
        if title == "Positionals:":
            found.arguments = items(lines)
        elif title == "Options:":
            found.options = [option_of(*item) for item in items(lines)]
        elif title == "Subcommands:":
            found.commands = items(lines)
        elif title.endswith(":") and lines:
            found.lists.append((title[:-1], [tuple(line.strip().split("  ", 1)) for line in lines]))
        else:
            found.text.append(" ".join([title, *lines]))
    return found


def help_of(program, command=None):
    arguments = [command] if command else []
    text = subprocess.run([program, *arguments, "--help"], check=True, capture_output=True, text=True).stdout
    return parsed(" ".join(["qkv", *arguments]), text)


# Man pages: groff's language, man(7).


def roff(text):
    """Text as groff prints it unchanged."""
    for character, escape in (("\\", r"\e"), ("-", r"\-"), ("'", r"\(aq"), ("`", r"\(ga"), ("^", r"\(ha"), ("~", r"\(ti")):
        text = text.replace(character, escape)
    return rf"\&{text}" if text.startswith(".") else text


def bold(text):
    return rf"\fB{roff(text)}\fR"


def italic(text):
    return rf"\fI{roff(text)}\fR"


def section(title, *lines):
    return [f".SH {title.upper()}", *lines] if lines else []


def entries(pairs):
    """Terms, in roff already, with their indented helps."""
    return [line for term, text in pairs for line in (".TP", term, roff(text) or r"\&")]


def explained(text):
    """The help of a config's option, "(a | b) what; a: this, b: that", as lines with its choices below each other."""
    choices = re.match(r"\(([a-z0-9-]+(?: \| [a-z0-9-]+)+)\) ", text)
    names = "|".join(map(re.escape, choices[1].split(" | "))) if choices else "$^"
    head, *rest = re.split(rf"[;,] (?=(?:{names}): )", text)
    pairs = [part.split(": ", 1) for part in rest]
    return [roff(head), *([".RS"] + entries((bold(name), words) for name, words in pairs) + [".RE"] if pairs else [])]


def option_term(option):
    term = ", ".join(bold(flag) for flag in option.flags)
    return " ".join([term] + [italic(option.value)] * bool(option.value) + [roff(option.note)] * bool(option.note))


def examples(text):
    lines = []
    for paragraph in text.strip("\n").split("\n\n"):
        if paragraph.startswith("    "):
            lines += [".PP", ".RS 4", ".nf", *(roff(line.strip()) for line in paragraph.split("\n")), ".fi", ".RE"]
        else:
            lines += [".PP", roff(paragraph)]
    return lines


def page(help_text, version, data, others):
    name = help_text.name.replace(" ", "-")
    lines = [f'.TH {name.upper()} 1 "" "qkv {version}" "qkv"', ".ad l", ".nh"]
    lines += section("name", rf"{roff(name)} \- {roff(help_text.summary)}")
    program, *rest = help_text.usage.removeprefix(help_text.name).split(" ")
    lines += section("synopsis", " ".join([bold(help_text.name)] + [italic(word) for word in [program, *rest] if word]))
    lines += section("description", roff(help_text.summary) + ".",
                     *(line for text in help_text.text for line in (".PP", roff(text))))
    lines += section("arguments", *entries((italic(term), text) for term, text in help_text.arguments))
    lines += section("options", *entries((option_term(option), option.help) for option in help_text.options))
    lines += section("commands", *entries((bold(f"qkv-{term}") + "(1)", text) for term, text in help_text.commands))
    for title, pairs in help_text.lists:
        lines += section(title, *(line for term, text in pairs for line in (".TP", bold(term), *explained(text))))
    if help_text.commands:
        lines += section("environment", *entries((bold(term), text) for term, text in ENVIRONMENT))
        lines += section("files", *entries([(roff(f"{data}/configs"), "configs of the experiments"),
                                            (roff(f"{data}/datasets"), "their data, which they find from anywhere")]))
        lines += section("examples", *examples(EXAMPLES.format(data=data)))
    lines += section("exit status", *entries((bold(term), text) for term, text in EXIT_CODES))
    lines += section("see also", ",\n".join(bold(other) + "(1)" for other in others))
    return "\n".join(lines) + "\n"


# Completions. What a value can be follows from its name in the help.


def config_keys(commands):
    """The keys that --set takes: those that train lists."""
    return [term.split(" = ")[0] for command in commands for _, pairs in command.lists for term, _ in pairs if " = " in term]


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


BASH = r"""# bash completion of qkv, written from its --help
_qkv_files() { compopt -o filenames; mapfile -t COMPREPLY < <("$@"); }
_qkv_configs() { compgen -f -X '!*.toml' -- "$1"; compgen -d -- "$1"; }
_qkv_value() {  # KIND WORD
  case $1 in
    CONFIG) _qkv_files _qkv_configs "$2" ;;
    FILE | MODEL) _qkv_files compgen -f -- "$2" ;;
    FOLDER | RUN) _qkv_files compgen -d -- "$2" ;;
    KEY=VALUE) compopt -o nospace; mapfile -t COMPREPLY < <(compgen -S = -W '@KEYS@' -- "$2") ;;
    *'|'*) mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$2") ;;
  esac
}
_qkv() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options= argument= value=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '@COMMANDS@' -- "$word")
    return
  fi
  case $command in
@CASES@
  esac
  if [[ $value ]]; then
    _qkv_value "$value" "$word"
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    _qkv_value "$argument" "$word"
  fi
}
complete -F _qkv qkv
"""


def first_argument(command):
    return command.arguments[0][0] if command.arguments else ""


def bash_case(command):
    flags = " ".join(flag for option in command.options for flag in option.flags)
    values = "".join(f"\n        {' | '.join(option.flags)}) value={quoted(option.value)} ;;"
                     for option in command.options if option.value)
    return (f"    {command.name.split()[1]})\n      options={quoted(flags)} argument={quoted(first_argument(command))}\n"
            f"      case $before in{values}\n      esac ;;")


def bash(program, commands):
    names = [name for name, _ in program.commands] + [flag for option in program.options for flag in option.flags]
    return (BASH.replace("@KEYS@", " ".join(config_keys(commands))).replace("@COMMANDS@", " ".join(names))
            .replace("@CASES@", "\n".join(map(bash_case, commands))))


ZSH = """#compdef qkv
# zsh completion of qkv, written from its --help
_qkv() {
  local curcontext=$curcontext state line
  local -a commands=(
@COMMANDS@
  )
  _arguments -C @OPTIONS@ '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
@CASES@
      esac ;;
  esac
}
_qkv "$@"
"""


def zsh_action(value, keys):
    """How zsh's _arguments completes a value."""
    if "|" in value:
        return f"({value.replace('|', ' ')})"
    return {"CONFIG": '_files -g "*.toml(-.)"', "FILE": "_files", "MODEL": "_files", "FOLDER": "_files -/", "RUN": "_files -/",
            "KEY=VALUE": f"compadd -S = -- {' '.join(keys)}"}.get(value, " ")


def zsh_option(option, keys):
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.summary)
    value = f":{option.value}:{zsh_action(option.value, keys)}" if option.value else ""
    others = "(" + " ".join(option.flags) + ")" if not option.is_repeated else "*"
    return " ".join(quoted(f"{others}{flag}[{text}]{value}") for flag in option.flags)


def zsh_case(command, keys):
    specs = [zsh_option(option, keys) for option in command.options]
    if command.arguments:
        name = first_argument(command)
        specs.append(quoted(f"1:{name}:{zsh_action(name, keys)}"))
        specs.append(quoted("*:argument:_files"))
    joined = " \\\n            ".join(specs)
    return f"        {command.name.split()[1]})\n          _arguments {joined} ;;"


def zsh(program, commands):
    keys = config_keys(commands)
    names = "\n".join("    " + quoted(name + ":" + SUMMARY_END.split(text)[0].strip()) for name, text in program.commands)
    return (ZSH.replace("@COMMANDS@", names).replace("@OPTIONS@", " ".join(zsh_option(o, keys) for o in program.options))
            .replace("@CASES@", "\n".join(zsh_case(command, keys) for command in commands)))


def fish_value(value, keys):
    """How fish completes a value."""
    if "|" in value:
        return f"-x -a {quoted(value.replace('|', ' '))}"
    return {"CONFIG": "-k -x -a '(__fish_complete_suffix .toml)'", "FILE": "-r -F", "MODEL": "-r -F",
            "FOLDER": "-x -a '(__fish_complete_directories)'", "RUN": "-x -a '(__fish_complete_directories)'",
            "KEY=VALUE": f"-x -a {quoted(' '.join(key + '=' for key in keys))}"}.get(value, "-x")


def fish_option(option, condition, keys):
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = " " + fish_value(option.value, keys) if option.value else ""
    return f"complete -c qkv -n {quoted(condition)} {flags}{value} -d {quoted(option.summary)}"


def fish(program, commands):
    keys = config_keys(commands)
    lines = ["# fish completion of qkv, written from its --help", "complete -c qkv -f"]
    lines += [f"complete -c qkv -n __fish_use_subcommand -a {name} -d {quoted(SUMMARY_END.split(text)[0].strip())}"
              for name, text in program.commands]
    lines += [fish_option(option, "__fish_use_subcommand", keys) for option in program.options]
    for command in commands:
        condition = f"__fish_seen_subcommand_from {command.name.split()[1]}"
        if command.arguments:
            lines.append(f"complete -c qkv -n {quoted(condition)} {fish_value(first_argument(command), keys)}")
        lines += [fish_option(option, condition, keys) for option in command.options]
    return "\n".join(lines) + "\n"


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def main():
    program_file, folder, data = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    version = subprocess.run([program_file, "--version"], check=True, capture_output=True, text=True).stdout.split()[0]
    program = help_of(program_file)
    commands = [help_of(program_file, name) for name, _ in program.commands]
    names = [command.name.replace(" ", "-") for command in commands]
    for command in [program, *commands]:
        name = command.name.replace(" ", "-")
        text = page(command, version, data, names if command is program else ["qkv"])
        write(folder / f"man/man1/{name}.1.gz", gzip.compress(text.encode(), 9, mtime=0))
    write(folder / "bash-completion/completions/qkv", bash(program, commands).encode())
    write(folder / "zsh/vendor-completions/_qkv", zsh(program, commands).encode())
    write(folder / "fish/vendor_completions.d/qkv.fish", fish(program, commands).encode())


if __name__ == "__main__":
    main()
