#compdef ringfence

autoload -U is-at-least

_ringfence() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_ringfence_commands" \
"*::: :->ringfence" \
&& ret=0
    case $state in
    (ringfence)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:ringfence-command-$line[1]:"
        case $line[1] in
            (run)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this policy file alone, under the managed ceiling]:FILE:_files' \
'*--preset=[Add a built-in preset; the program'\''s name picks one by itself]:NAME:_default' \
'--workspace=[The folder to work in; the working directory, when none is named]:DIR:_files -/' \
'*--write=[Let this path, taken literally, be read and written]:PATH:_files' \
'*--read=[Let this path, taken literally, be read]:PATH:_files' \
'*--deny-read=[Hide this path, taken literally]:PATH:_files' \
'*--deny-write=[Keep this path, taken literally, from being written]:PATH:_files' \
'--home=[What stands in the place of the home folder]:MODE:((private\:"A persistent folder of ours per workspace"
visible\:"The real home, read-only, without the credential stores"
empty\:"Nothing that stays"))' \
'*--allow-host=[Let this host be reached, on ports 443 and 80 unless one is named]:HOST[:PORT]:_default' \
'*--deny-host=[Keep this host from being reached]:HOST[:PORT]:_default' \
'*--publish=[Open a port of a server inside on the host'\''s loopback]:PORT:_default' \
'*--host-port=[Open a port of a server on the host'\''s loopback inside]:PORT:_default' \
'*--unix=[Let this Unix socket of the host be connected to]:PATH:_files' \
'*--env=[Pass a variable that would be withheld, or set it]:NAME[=VALUE]:_default' \
'*--env-deny=[Withhold variables whose names match, \`*\` being a wildcard]:PATTERN:_default' \
'--memory=[The most memory, such as 8G]:SIZE:_default' \
'--pids=[The most processes and threads]:N:_default' \
'--disk=[The most bytes written, such as 20G]:SIZE:_default' \
'--wall=[The longest time, such as 90s or 2h]:DURATION:_default' \
'--audit=[Append every decision to this file, one JSON line each, instead of to the log that \`ringfence log\` reads]:FILE:_files' \
'--explain=[For whom the denials are summed up at the end]:WHO:((person\:"A person\: a table, with the flag that would allow each"
model\:"A language model\: sentences in a frame, with what not to do"))' \
'--no-preset[Use no preset that the program'\''s name would pick]' \
'--allow-wide-workspace[Accept \`/\`, the home folder or a folder above it as the workspace that --workspace names]' \
'--allow-weaker[Run although a wall is weaker than designed or missing]' \
'--no-prove[Do not prove the walls before the command starts]' \
'--no-pty[Hand the terminal itself to the command instead of a private one]' \
'(-v --verbose)-q[Say nothing but errors]' \
'(-v --verbose)--quiet[Say nothing but errors]' \
'-v[Say every denial at once, and more at the start]' \
'--verbose[Say every denial at once, and more at the start]' \
'--json[Errors and events as JSON lines on standard error]' \
'--dry-run[Print what would be done, and do nothing]' \
'--no-ask[Never ask; what is not allowed is denied]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- The program and its arguments:_cmdambivalent' \
&& ret=0
;;
(exec)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this policy file alone, under the managed ceiling]:FILE:_files' \
'*--preset=[Add a built-in preset; the program'\''s name picks one by itself]:NAME:_default' \
'--workspace=[The folder to work in; the working directory, when none is named]:DIR:_files -/' \
'*--write=[Let this path, taken literally, be read and written]:PATH:_files' \
'*--read=[Let this path, taken literally, be read]:PATH:_files' \
'*--deny-read=[Hide this path, taken literally]:PATH:_files' \
'*--deny-write=[Keep this path, taken literally, from being written]:PATH:_files' \
'--home=[What stands in the place of the home folder]:MODE:((private\:"A persistent folder of ours per workspace"
visible\:"The real home, read-only, without the credential stores"
empty\:"Nothing that stays"))' \
'*--allow-host=[Let this host be reached, on ports 443 and 80 unless one is named]:HOST[:PORT]:_default' \
'*--deny-host=[Keep this host from being reached]:HOST[:PORT]:_default' \
'*--publish=[Open a port of a server inside on the host'\''s loopback]:PORT:_default' \
'*--host-port=[Open a port of a server on the host'\''s loopback inside]:PORT:_default' \
'*--unix=[Let this Unix socket of the host be connected to]:PATH:_files' \
'*--env=[Pass a variable that would be withheld, or set it]:NAME[=VALUE]:_default' \
'*--env-deny=[Withhold variables whose names match, \`*\` being a wildcard]:PATTERN:_default' \
'--memory=[The most memory, such as 8G]:SIZE:_default' \
'--pids=[The most processes and threads]:N:_default' \
'--disk=[The most bytes written, such as 20G]:SIZE:_default' \
'--wall=[The longest time, such as 90s or 2h]:DURATION:_default' \
'--audit=[Append every decision to this file, one JSON line each, instead of to the log that \`ringfence log\` reads]:FILE:_files' \
'--explain=[For whom the denials are summed up at the end]:WHO:((person\:"A person\: a table, with the flag that would allow each"
model\:"A language model\: sentences in a frame, with what not to do"))' \
'--no-preset[Use no preset that the program'\''s name would pick]' \
'--allow-wide-workspace[Accept \`/\`, the home folder or a folder above it as the workspace that --workspace names]' \
'--allow-weaker[Run although a wall is weaker than designed or missing]' \
'--no-prove[Do not prove the walls before the command starts]' \
'--no-pty[Hand the terminal itself to the command instead of a private one]' \
'(-v --verbose)-q[Say nothing but errors]' \
'(-v --verbose)--quiet[Say nothing but errors]' \
'-v[Say every denial at once, and more at the start]' \
'--verbose[Say every denial at once, and more at the start]' \
'--json[Errors and events as JSON lines on standard error]' \
'--dry-run[Print what would be done, and do nothing]' \
'--no-ask[Never ask; what is not allowed is denied]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':script -- The command line, for /bin/sh, or bash where that is the user'\''s shell:_default' \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this policy file alone, under the managed ceiling]:FILE:_files' \
'*--preset=[Add a built-in preset; the program'\''s name picks one by itself]:NAME:_default' \
'--workspace=[The folder to work in; the working directory, when none is named]:DIR:_files -/' \
'*--write=[Let this path, taken literally, be read and written]:PATH:_files' \
'*--read=[Let this path, taken literally, be read]:PATH:_files' \
'*--deny-read=[Hide this path, taken literally]:PATH:_files' \
'*--deny-write=[Keep this path, taken literally, from being written]:PATH:_files' \
'--home=[What stands in the place of the home folder]:MODE:((private\:"A persistent folder of ours per workspace"
visible\:"The real home, read-only, without the credential stores"
empty\:"Nothing that stays"))' \
'*--allow-host=[Let this host be reached, on ports 443 and 80 unless one is named]:HOST[:PORT]:_default' \
'*--deny-host=[Keep this host from being reached]:HOST[:PORT]:_default' \
'*--publish=[Open a port of a server inside on the host'\''s loopback]:PORT:_default' \
'*--host-port=[Open a port of a server on the host'\''s loopback inside]:PORT:_default' \
'*--unix=[Let this Unix socket of the host be connected to]:PATH:_files' \
'*--env=[Pass a variable that would be withheld, or set it]:NAME[=VALUE]:_default' \
'*--env-deny=[Withhold variables whose names match, \`*\` being a wildcard]:PATTERN:_default' \
'--memory=[The most memory, such as 8G]:SIZE:_default' \
'--pids=[The most processes and threads]:N:_default' \
'--disk=[The most bytes written, such as 20G]:SIZE:_default' \
'--wall=[The longest time, such as 90s or 2h]:DURATION:_default' \
'--no-preset[Use no preset that the program'\''s name would pick]' \
'--allow-wide-workspace[Accept \`/\`, the home folder or a folder above it as the workspace that --workspace names]' \
'--allow-weaker[Run although a wall is weaker than designed or missing]' \
'--no-prove[Do not prove the walls before the command starts]' \
'--json[Print data instead of text]' \
'--all[Name every entry of the built-in tables instead of counting them]' \
'()--codes[Print all diagnostic codes, as Markdown]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::subject -- A diagnostic code such as RF0103, or a program whose run is to be explained:_default' \
&& ret=0
;;
(why)
_arguments "${_arguments_options[@]}" : \
'--policy=[Use this policy file alone, under the managed ceiling]:FILE:_files' \
'*--preset=[Add a built-in preset; the program'\''s name picks one by itself]:NAME:_default' \
'--workspace=[The folder to work in; the working directory, when none is named]:DIR:_files -/' \
'*--write=[Let this path, taken literally, be read and written]:PATH:_files' \
'*--read=[Let this path, taken literally, be read]:PATH:_files' \
'*--deny-read=[Hide this path, taken literally]:PATH:_files' \
'*--deny-write=[Keep this path, taken literally, from being written]:PATH:_files' \
'--home=[What stands in the place of the home folder]:MODE:((private\:"A persistent folder of ours per workspace"
visible\:"The real home, read-only, without the credential stores"
empty\:"Nothing that stays"))' \
'*--allow-host=[Let this host be reached, on ports 443 and 80 unless one is named]:HOST[:PORT]:_default' \
'*--deny-host=[Keep this host from being reached]:HOST[:PORT]:_default' \
'*--publish=[Open a port of a server inside on the host'\''s loopback]:PORT:_default' \
'*--host-port=[Open a port of a server on the host'\''s loopback inside]:PORT:_default' \
'*--unix=[Let this Unix socket of the host be connected to]:PATH:_files' \
'*--env=[Pass a variable that would be withheld, or set it]:NAME[=VALUE]:_default' \
'*--env-deny=[Withhold variables whose names match, \`*\` being a wildcard]:PATTERN:_default' \
'--memory=[The most memory, such as 8G]:SIZE:_default' \
'--pids=[The most processes and threads]:N:_default' \
'--disk=[The most bytes written, such as 20G]:SIZE:_default' \
'--wall=[The longest time, such as 90s or 2h]:DURATION:_default' \
'--program=[The program that would ask, which picks its preset]:PROGRAM:_default' \
'--no-preset[Use no preset that the program'\''s name would pick]' \
'--allow-wide-workspace[Accept \`/\`, the home folder or a folder above it as the workspace that --workspace names]' \
'--allow-weaker[Run although a wall is weaker than designed or missing]' \
'--no-prove[Do not prove the walls before the command starts]' \
'--json[Print data instead of text]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':question -- `read`, `write`, or a HOST\:PORT:_default' \
'::path -- The path of `read` and `write`:_files' \
&& ret=0
;;
(preset)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
":: :_ringfence__subcmd__preset_commands" \
"*::: :->preset" \
&& ret=0

    case $state in
    (preset)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:ringfence-preset-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--json[Print data instead of text]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(show)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
':name -- Its name:_default' \
&& ret=0
;;
        esac
    ;;
esac
;;
(trust)
_arguments "${_arguments_options[@]}" : \
'--revoke[Take the trust away again]' \
'(--revoke)--list[List what is trusted]' \
'-h[Print help]' \
'--help[Print help]' \
'::file -- The file; the one that is found from here upwards, when none is named:_files' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'--json[Print data instead of a table]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(log)
_arguments "${_arguments_options[@]}" : \
'--file=[The audit file; the one that is written when a run names none, by default]:FILE:_files' \
'--run=[Only this run, as the lines name it]:RUN:_default' \
'--host=[Only this host, or with \`*.\` those below it]:HOST:_default' \
'--follow[Wait for new lines]' \
'--json[Print the lines as they are]' \
'--denied[Only what was refused]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(home)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
":: :_ringfence__subcmd__home_commands" \
"*::: :->home" \
&& ret=0

    case $state in
    (home)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:ringfence-home-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--json[Print data instead of text]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(clean)
_arguments "${_arguments_options[@]}" : \
'--workspace=[The workspace whose home is removed; the working directory, when none is named]:DIR:_files -/' \
'(--all --workspace)--orphans[Those whose workspace no longer exists]' \
'(--workspace)--all[Every one]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
        esac
    ;;
esac
;;
(bench)
_arguments "${_arguments_options[@]}" : \
'-n+[How many interleaved pairs of runs]:RUNS:_default' \
'--runs=[How many interleaved pairs of runs]:RUNS:_default' \
'--json[Print data instead of a table]' \
'-h[Print help]' \
'--help[Print help]' \
'*::command -- What is run, instead of `true`:_cmdambivalent' \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
'()--dir=[Write one page a verb into this folder instead]:DIR:_files -/' \
'-h[Print help]' \
'--help[Print help]' \
'::verb -- The verb; the whole program, when none is named:_default' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
':shell -- The shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
(schema)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
        esac
    ;;
esac
}

(( $+functions[_ringfence_commands] )) ||
_ringfence_commands() {
    local commands; commands=(
'run:Run a program inside walls' \
'exec:Run a shell command line inside walls, for harnesses\: no line at the start, the summary of denials at the end' \
'explain:Print the effective policy with its origins, the plan and the status of each wall; or what a diagnostic code means' \
'why:Say whether a path or a host would be allowed, by which rule, and what would change that' \
'preset:List the built-in presets, or print one' \
'trust:Trust the present content of a repository'\''s ringfence.toml, so that its grants hold' \
'doctor:Check what this host can enforce, with the remedy for what it cannot' \
'log:Read an audit file' \
'home:List or remove the private home folders' \
'bench:Measure what the walls cost on this host' \
'man:Print the manual page' \
'completions:Print the completion script for a shell' \
'schema:Print the JSON schema of policy files' \
    )
    _describe -t commands 'ringfence commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__bench_commands] )) ||
_ringfence__subcmd__bench_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence bench commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__completions_commands] )) ||
_ringfence__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence completions commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__doctor_commands] )) ||
_ringfence__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence doctor commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__exec_commands] )) ||
_ringfence__subcmd__exec_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence exec commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__explain_commands] )) ||
_ringfence__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence explain commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__home_commands] )) ||
_ringfence__subcmd__home_commands() {
    local commands; commands=(
'list:The folders, their workspaces and sizes' \
'clean:Remove them\: this workspace'\''s, or all whose workspace is gone, or all' \
    )
    _describe -t commands 'ringfence home commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__home__subcmd__clean_commands] )) ||
_ringfence__subcmd__home__subcmd__clean_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence home clean commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__home__subcmd__list_commands] )) ||
_ringfence__subcmd__home__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence home list commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__log_commands] )) ||
_ringfence__subcmd__log_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence log commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__man_commands] )) ||
_ringfence__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence man commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__preset_commands] )) ||
_ringfence__subcmd__preset_commands() {
    local commands; commands=(
'list:Names and one line each' \
'show:The whole file, with the reason for every entry' \
    )
    _describe -t commands 'ringfence preset commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__preset__subcmd__list_commands] )) ||
_ringfence__subcmd__preset__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence preset list commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__preset__subcmd__show_commands] )) ||
_ringfence__subcmd__preset__subcmd__show_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence preset show commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__run_commands] )) ||
_ringfence__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence run commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__schema_commands] )) ||
_ringfence__subcmd__schema_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence schema commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__trust_commands] )) ||
_ringfence__subcmd__trust_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence trust commands' commands "$@"
}
(( $+functions[_ringfence__subcmd__why_commands] )) ||
_ringfence__subcmd__why_commands() {
    local commands; commands=()
    _describe -t commands 'ringfence why commands' commands "$@"
}

if [ "$funcstack[1]" = "_ringfence" ]; then
    _ringfence "$@"
else
    compdef _ringfence ringfence
fi
