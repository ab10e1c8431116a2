# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ringfence_global_optspecs
    string join \n h/help V/version
end

function __fish_ringfence_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ringfence_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ringfence_using_subcommand
    set -l cmd (__fish_ringfence_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ringfence -n "__fish_ringfence_needs_command" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_needs_command" -s V -l version -d 'Print version'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "run" -d 'Run a program inside walls'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "exec" -d 'Run a shell command line inside walls, for harnesses: no line at the start, the summary of denials at the end'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "explain" -d 'Print the effective policy with its origins, the plan and the status of each wall; or what a diagnostic code means'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "why" -d 'Say whether a path or a host would be allowed, by which rule, and what would change that'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "preset" -d 'List the built-in presets, or print one'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "trust" -d 'Trust the present content of a repository\'s ringfence.toml, so that its grants hold'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "doctor" -d 'Check what this host can enforce, with the remedy for what it cannot'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "log" -d 'Read an audit file'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "home" -d 'List or remove the private home folders'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "bench" -d 'Measure what the walls cost on this host'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "man" -d 'Print the manual page'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "completions" -d 'Print the completion script for a shell'
complete -c ringfence -n "__fish_ringfence_needs_command" -f -a "schema" -d 'Print the JSON schema of policy files'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l policy -d 'Use this policy file alone, under the managed ceiling' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l preset -d 'Add a built-in preset; the program\'s name picks one by itself' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l workspace -d 'The folder to work in; the working directory, when none is named' -r -f -a "(__fish_complete_directories)"
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l write -d 'Let this path, taken literally, be read and written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l read -d 'Let this path, taken literally, be read' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l deny-read -d 'Hide this path, taken literally' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l deny-write -d 'Keep this path, taken literally, from being written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l home -d 'What stands in the place of the home folder' -r -f -a "private\t'A persistent folder of ours per workspace'
visible\t'The real home, read-only, without the credential stores'
empty\t'Nothing that stays'"
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l allow-host -d 'Let this host be reached, on ports 443 and 80 unless one is named' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l deny-host -d 'Keep this host from being reached' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l publish -d 'Open a port of a server inside on the host\'s loopback' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l host-port -d 'Open a port of a server on the host\'s loopback inside' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l unix -d 'Let this Unix socket of the host be connected to' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l env -d 'Pass a variable that would be withheld, or set it' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l env-deny -d 'Withhold variables whose names match, `*` being a wildcard' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l memory -d 'The most memory, such as 8G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l pids -d 'The most processes and threads' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l disk -d 'The most bytes written, such as 20G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l wall -d 'The longest time, such as 90s or 2h' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l audit -d 'Append every decision to this file, one JSON line each, instead of to the log that `ringfence log` reads' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l explain -d 'For whom the denials are summed up at the end' -r -f -a "person\t'A person: a table, with the flag that would allow each'
model\t'A language model: sentences in a frame, with what not to do'"
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l no-preset -d 'Use no preset that the program\'s name would pick'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l allow-wide-workspace -d 'Accept `/`, the home folder or a folder above it as the workspace that --workspace names'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l allow-weaker -d 'Run although a wall is weaker than designed or missing'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l no-prove -d 'Do not prove the walls before the command starts'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l no-pty -d 'Hand the terminal itself to the command instead of a private one'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -s q -l quiet -d 'Say nothing but errors'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -s v -l verbose -d 'Say every denial at once, and more at the start'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l json -d 'Errors and events as JSON lines on standard error'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l dry-run -d 'Print what would be done, and do nothing'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -l no-ask -d 'Never ask; what is not allowed is denied'
complete -c ringfence -n "__fish_ringfence_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l policy -d 'Use this policy file alone, under the managed ceiling' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l preset -d 'Add a built-in preset; the program\'s name picks one by itself' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l workspace -d 'The folder to work in; the working directory, when none is named' -r -f -a "(__fish_complete_directories)"
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l write -d 'Let this path, taken literally, be read and written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l read -d 'Let this path, taken literally, be read' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l deny-read -d 'Hide this path, taken literally' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l deny-write -d 'Keep this path, taken literally, from being written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l home -d 'What stands in the place of the home folder' -r -f -a "private\t'A persistent folder of ours per workspace'
visible\t'The real home, read-only, without the credential stores'
empty\t'Nothing that stays'"
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l allow-host -d 'Let this host be reached, on ports 443 and 80 unless one is named' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l deny-host -d 'Keep this host from being reached' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l publish -d 'Open a port of a server inside on the host\'s loopback' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l host-port -d 'Open a port of a server on the host\'s loopback inside' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l unix -d 'Let this Unix socket of the host be connected to' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l env -d 'Pass a variable that would be withheld, or set it' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l env-deny -d 'Withhold variables whose names match, `*` being a wildcard' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l memory -d 'The most memory, such as 8G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l pids -d 'The most processes and threads' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l disk -d 'The most bytes written, such as 20G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l wall -d 'The longest time, such as 90s or 2h' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l audit -d 'Append every decision to this file, one JSON line each, instead of to the log that `ringfence log` reads' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l explain -d 'For whom the denials are summed up at the end' -r -f -a "person\t'A person: a table, with the flag that would allow each'
model\t'A language model: sentences in a frame, with what not to do'"
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l no-preset -d 'Use no preset that the program\'s name would pick'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l allow-wide-workspace -d 'Accept `/`, the home folder or a folder above it as the workspace that --workspace names'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l allow-weaker -d 'Run although a wall is weaker than designed or missing'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l no-prove -d 'Do not prove the walls before the command starts'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l no-pty -d 'Hand the terminal itself to the command instead of a private one'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -s q -l quiet -d 'Say nothing but errors'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -s v -l verbose -d 'Say every denial at once, and more at the start'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l json -d 'Errors and events as JSON lines on standard error'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l dry-run -d 'Print what would be done, and do nothing'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -l no-ask -d 'Never ask; what is not allowed is denied'
complete -c ringfence -n "__fish_ringfence_using_subcommand exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l policy -d 'Use this policy file alone, under the managed ceiling' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l preset -d 'Add a built-in preset; the program\'s name picks one by itself' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l workspace -d 'The folder to work in; the working directory, when none is named' -r -f -a "(__fish_complete_directories)"
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l write -d 'Let this path, taken literally, be read and written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l read -d 'Let this path, taken literally, be read' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l deny-read -d 'Hide this path, taken literally' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l deny-write -d 'Keep this path, taken literally, from being written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l home -d 'What stands in the place of the home folder' -r -f -a "private\t'A persistent folder of ours per workspace'
visible\t'The real home, read-only, without the credential stores'
empty\t'Nothing that stays'"
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l allow-host -d 'Let this host be reached, on ports 443 and 80 unless one is named' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l deny-host -d 'Keep this host from being reached' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l publish -d 'Open a port of a server inside on the host\'s loopback' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l host-port -d 'Open a port of a server on the host\'s loopback inside' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l unix -d 'Let this Unix socket of the host be connected to' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l env -d 'Pass a variable that would be withheld, or set it' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l env-deny -d 'Withhold variables whose names match, `*` being a wildcard' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l memory -d 'The most memory, such as 8G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l pids -d 'The most processes and threads' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l disk -d 'The most bytes written, such as 20G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l wall -d 'The longest time, such as 90s or 2h' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l no-preset -d 'Use no preset that the program\'s name would pick'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l allow-wide-workspace -d 'Accept `/`, the home folder or a folder above it as the workspace that --workspace names'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l allow-weaker -d 'Run although a wall is weaker than designed or missing'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l no-prove -d 'Do not prove the walls before the command starts'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l json -d 'Print data instead of text'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l all -d 'Name every entry of the built-in tables instead of counting them'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -l codes -d 'Print all diagnostic codes, as Markdown'
complete -c ringfence -n "__fish_ringfence_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l policy -d 'Use this policy file alone, under the managed ceiling' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l preset -d 'Add a built-in preset; the program\'s name picks one by itself' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l workspace -d 'The folder to work in; the working directory, when none is named' -r -f -a "(__fish_complete_directories)"
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l write -d 'Let this path, taken literally, be read and written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l read -d 'Let this path, taken literally, be read' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l deny-read -d 'Hide this path, taken literally' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l deny-write -d 'Keep this path, taken literally, from being written' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l home -d 'What stands in the place of the home folder' -r -f -a "private\t'A persistent folder of ours per workspace'
visible\t'The real home, read-only, without the credential stores'
empty\t'Nothing that stays'"
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l allow-host -d 'Let this host be reached, on ports 443 and 80 unless one is named' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l deny-host -d 'Keep this host from being reached' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l publish -d 'Open a port of a server inside on the host\'s loopback' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l host-port -d 'Open a port of a server on the host\'s loopback inside' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l unix -d 'Let this Unix socket of the host be connected to' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l env -d 'Pass a variable that would be withheld, or set it' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l env-deny -d 'Withhold variables whose names match, `*` being a wildcard' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l memory -d 'The most memory, such as 8G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l pids -d 'The most processes and threads' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l disk -d 'The most bytes written, such as 20G' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l wall -d 'The longest time, such as 90s or 2h' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l program -d 'The program that would ask, which picks its preset' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l no-preset -d 'Use no preset that the program\'s name would pick'
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l allow-wide-workspace -d 'Accept `/`, the home folder or a folder above it as the workspace that --workspace names'
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l allow-weaker -d 'Run although a wall is weaker than designed or missing'
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l no-prove -d 'Do not prove the walls before the command starts'
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -l json -d 'Print data instead of text'
complete -c ringfence -n "__fish_ringfence_using_subcommand why" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringfence -n "__fish_ringfence_using_subcommand preset; and not __fish_seen_subcommand_from list show" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand preset; and not __fish_seen_subcommand_from list show" -f -a "list" -d 'Names and one line each'
complete -c ringfence -n "__fish_ringfence_using_subcommand preset; and not __fish_seen_subcommand_from list show" -f -a "show" -d 'The whole file, with the reason for every entry'
complete -c ringfence -n "__fish_ringfence_using_subcommand preset; and __fish_seen_subcommand_from list" -l json -d 'Print data instead of text'
complete -c ringfence -n "__fish_ringfence_using_subcommand preset; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand preset; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand trust" -l revoke -d 'Take the trust away again'
complete -c ringfence -n "__fish_ringfence_using_subcommand trust" -l list -d 'List what is trusted'
complete -c ringfence -n "__fish_ringfence_using_subcommand trust" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand doctor" -l json -d 'Print data instead of a table'
complete -c ringfence -n "__fish_ringfence_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -l file -d 'The audit file; the one that is written when a run names none, by default' -r -F
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -l run -d 'Only this run, as the lines name it' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -l host -d 'Only this host, or with `*.` those below it' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -l follow -d 'Wait for new lines'
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -l json -d 'Print the lines as they are'
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -l denied -d 'Only what was refused'
complete -c ringfence -n "__fish_ringfence_using_subcommand log" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and not __fish_seen_subcommand_from list clean" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and not __fish_seen_subcommand_from list clean" -f -a "list" -d 'The folders, their workspaces and sizes'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and not __fish_seen_subcommand_from list clean" -f -a "clean" -d 'Remove them: this workspace\'s, or all whose workspace is gone, or all'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and __fish_seen_subcommand_from list" -l json -d 'Print data instead of text'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and __fish_seen_subcommand_from clean" -l workspace -d 'The workspace whose home is removed; the working directory, when none is named' -r -f -a "(__fish_complete_directories)"
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and __fish_seen_subcommand_from clean" -l orphans -d 'Those whose workspace no longer exists'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and __fish_seen_subcommand_from clean" -l all -d 'Every one'
complete -c ringfence -n "__fish_ringfence_using_subcommand home; and __fish_seen_subcommand_from clean" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand bench" -s n -l runs -d 'How many interleaved pairs of runs' -r
complete -c ringfence -n "__fish_ringfence_using_subcommand bench" -l json -d 'Print data instead of a table'
complete -c ringfence -n "__fish_ringfence_using_subcommand bench" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand man" -l dir -d 'Write one page a verb into this folder instead' -r -f -a "(__fish_complete_directories)"
complete -c ringfence -n "__fish_ringfence_using_subcommand man" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand completions" -s h -l help -d 'Print help'
complete -c ringfence -n "__fish_ringfence_using_subcommand schema" -s h -l help -d 'Print help'
