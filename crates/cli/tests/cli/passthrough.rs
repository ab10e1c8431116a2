//! What passes through untouched: status, signals, streams, arguments.

use crate::scene::{Scene, everybody};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn exit_statuses_are_exact() {
    let scene = Scene::new(everybody()[0]);
    for status in [0, 1, 2, 42, 124, 125, 126, 127, 128, 130, 255] {
        let outcome = scene.ringfence(["run", "--", "sh", "-c", &format!("exit {status}")]);
        assert_eq!(outcome.status, status, "{outcome:#?}");
    }
}

#[test]
fn signals_that_end_the_command_are_told_as_a_shell_tells_them() {
    for who in everybody() {
        let scene = Scene::new(*who);
        for (name, number) in
            [("HUP", 1), ("INT", 2), ("ABRT", 6), ("KILL", 9), ("SEGV", 11), ("PIPE", 13), ("TERM", 15)]
        {
            let outcome = scene.ringfence(["run", "--", "sh", "-c", &format!("kill -{name} $$")]);
            assert_eq!(outcome.status, 128 + number, "{name}: {outcome:#?}");
        }
    }
}

#[test]
fn signals_sent_to_ringfence_reach_the_command() {
    let scene = Scene::new(everybody()[0]);
    for name in ["HUP", "INT", "TERM", "USR1"] {
        let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
        let mut command = scene.command(crate::scene::program_path());
        command.args(["run", "--quiet", "--", "bash", "-c", &script]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut ready = [0; 6];
        out.read_exact(&mut ready).unwrap();
        let killed = std::process::Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
        assert!(killed.unwrap().success());
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, format!("got {name}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(7), "{name}");
    }
}

#[test]
fn a_broken_pipe_ends_the_command_as_it_would_without_walls() {
    let scene = Scene::new(everybody()[0]);
    let outcome = scene.script("\"$RINGFENCE\" run -- yes | head -n 1; echo \"${PIPESTATUS[0]}\"");
    assert_eq!(outcome.stdout, "y\n141\n", "{outcome:#?}");
}

#[test]
fn standard_input_and_output_pass_through() {
    let scene = Scene::new(everybody()[0]);
    let mut command = scene.command(crate::scene::program_path());
    command.args(["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut input = child.stdin.take().unwrap();
    let copy = sent.clone();
    let writer = std::thread::spawn(move || input.write_all(&copy).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == sent, "{} of {} bytes", output.stdout.len(), sent.len());
}

#[test]
fn standard_output_is_the_commands_alone() {
    for who in everybody() {
        let scene = Scene::new(*who);
        for flags in [&[][..], &["--verbose"], &["--json"], &["--quiet"], &["--allow-host", "example.com"]] {
            let outcome = scene.ringfence([&["run"], flags, &["--", "echo", "out"]].concat());
            assert_eq!(outcome.stdout, "out\n", "{flags:?}: {outcome:#?}");
        }
        assert_eq!(scene.ringfence(["exec", "echo out"]).stdout, "out\n");
    }
}

#[test]
fn quiet_is_quiet_and_otherwise_every_line_names_its_speaker() {
    let scene = Scene::new(everybody()[0]);
    assert_eq!(scene.ringfence(["run", "--quiet", "--", "true"]).ok().stderr, "");
    let said = scene.ringfence(["run", "--", "true"]).ok().stderr.clone();
    assert!(said.contains("residual risk"), "{said}");
    assert!(said.lines().all(|line| line.starts_with("ringfence: ")), "{said}");
    assert_eq!(scene.ringfence(["exec", "true"]).ok().stderr, "", "a harness gets no line at the start");
}

#[test]
fn closed_streams() {
    let scene = Scene::new(everybody()[0]);
    for (redirections, expected) in [("<&-", "in\n"), (">&-", ""), ("2>&-", "in\n"), ("<&- >&- 2>&-", "")] {
        let outcome = scene.script(&format!("\"$RINGFENCE\" run -- sh -c 'echo in; exit 3' {redirections}"));
        assert_eq!(outcome.stdout, expected, "{redirections}: {outcome:#?}");
        // A shell that cannot write still ends with the status that it was told.
        assert_eq!(outcome.status, 3, "{redirections}: {outcome:#?}");
    }
    let outcome = scene.script("\"$RINGFENCE\" explain >&-");
    assert!(outcome.status == 0 || outcome.status == 125, "no crash: {outcome:#?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scene = Scene::new(everybody()[0]);
    let outcome = scene.script("\"$RINGFENCE\" explain | head -n 1 >/dev/null; echo \"${PIPESTATUS[0]}\"");
    assert_eq!(outcome.stdout, "0\n", "{outcome:#?}");
    let outcome = scene.script("\"$RINGFENCE\" --help | head -n 1 >/dev/null; echo \"${PIPESTATUS[0]}\"");
    assert_eq!(outcome.stdout, "0\n", "{outcome:#?}");
}

#[test]
fn the_wall_time_ends_the_whole_tree() {
    let scene = Scene::new(everybody()[0]);
    let begin = Instant::now();
    let outcome = scene.ringfence(["run", "--wall", "300ms", "--", "sh", "-c", "sleep 31.4159 & sleep 31.4159"]);
    assert_eq!(outcome.status, 124, "{outcome:#?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert!(outcome.stderr.contains("300ms") || outcome.stderr.contains("time"), "{outcome:#?}");
}

#[test]
fn exec_runs_a_shell_line_with_its_quotes_and_its_status() {
    let scene = Scene::new(everybody()[0]);
    let outcome = scene.ringfence(["exec", "printf '%s|' 'a b' \"c  d\"; exit 9"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (9, "a b|c  d|"));
    let outcome = scene.ringfence(["exec", "-x; echo $?"]);
    assert_eq!(outcome.stdout, "127\n", "a line that starts with a dash is no flag: {outcome:#?}");
}

#[test]
fn arguments_after_the_program_are_the_programs() {
    let scene = Scene::new(everybody()[0]);
    let outcome = scene.ringfence(["run", "echo", "--write", "--", "-q", "--help"]);
    assert_eq!(outcome.stdout, "--write -- -q --help\n", "{outcome:#?}");
}

/// A server on the host's loopback that greets each client.
fn greeter() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            let _ = client.write_all(b"hello from the host\n");
        }
    });
    port
}

#[test]
fn the_address_that_the_users_environment_names_is_reached_and_no_other() {
    for who in everybody() {
        let scene = Scene::new(*who);
        let port = greeter();
        let talk = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && cat <&3");
        let run = |preset: &str, url: Option<String>| {
            let mut command = scene.command(crate::scene::program_path());
            command.args(["run", "--verbose", "--preset", preset, "--", "bash", "-c", &talk]);
            command.envs(url.map(|url| ("ANTHROPIC_BASE_URL", url)));
            scene.finish(command)
        };
        let url = || Some(format!("http://127.0.0.1:{port}/v1"));
        let reached = run("claude-code", url());
        assert_eq!(reached.stdout, "hello from the host\n", "{reached:#?}");
        assert!(reached.stderr.contains("ANTHROPIC_BASE_URL opens port"), "{reached:#?}");
        assert_eq!(run("claude-code", None).stdout, "", "nobody named it");
        assert_eq!(run("git", url()).stdout, "", "the preset does not speak of the variable");
    }
}

#[test]
fn a_published_port_reaches_the_server_inside() {
    let scene = Scene::new(everybody()[0]);
    // A free port, as far as one can know.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = format!(
        "import socket\ns = socket.create_server(('127.0.0.1', {port}))\nprint('ready', flush=True)\n\
         c, _ = s.accept()\nc.sendall(b'hello from inside')\nc.close()"
    );
    let mut command = scene.command(crate::scene::program_path());
    command
        .args(["run", "--quiet", "--publish", &port.to_string(), "--", "python3", "-c", &server])
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 6];
    let mut out = child.stdout.take().unwrap();
    if out.read_exact(&mut ready).is_err() {
        let _ = child.wait();
        return crate::scene::skipped("needs python3");
    }
    let mut got = String::new();
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap().read_to_string(&mut got).unwrap();
    assert_eq!(got, "hello from inside");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_port_that_is_taken_is_found_out_before_the_start() {
    let scene = Scene::new(everybody()[0]);
    let port = greeter().to_string();
    scene.ringfence(["run", "--publish", &port, "--", "sh", "-c", "echo ran"]).refused(125, &["RF0006", &port]);
}
