//! Throughput and latency: direct over loopback, and from inside through a CONNECT tunnel and the transparent door.

use super::median_min;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const BYTES: u64 = 2 << 30;
const PINGS: usize = 2_000;
const ROUNDS: usize = 5;

/// The figures of one client run.
struct Figures {
    gigabytes_a_second: f64,
    ping_micros: f64,
}

pub(super) fn run(program: &Path, helper: &Path, place: &Path) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
    let port = listener.local_addr().context("no local address")?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    // A copy inside the workspace, since the build folder may lie in a home that the sandbox hides.
    let client = place.join("bench-client");
    std::fs::copy(helper, &client).context("cannot copy the client")?;
    let client = client.to_string_lossy().into_owned();
    let mut direct = Vec::new();
    let mut tunnel = Vec::new();
    for _ in 0..ROUNDS {
        direct.push(figures(Command::new(&client).args(["bench-client", "direct", &port.to_string()]), place)?);
        tunnel.push(figures(
            Command::new(program)
                .args(["run", "--quiet", "--allow-host", &format!("127.0.0.1:{port}"), "--", &client])
                .args(["bench-client", "connect", &port.to_string()]),
            place,
        )?);
    }
    let mut report = String::from(
        "| loopback, one connection | GB/s median | GB/s best | round trip of 64 bytes, median us | best us |\n|---|---|---|---|---|\n",
    );
    for (name, figures) in [("direct", &direct), ("CONNECT tunnel out of a sandbox", &tunnel)] {
        let mut rate: Vec<f64> = figures.iter().map(|f| f.gigabytes_a_second).collect();
        let mut ping: Vec<f64> = figures.iter().map(|f| f.ping_micros).collect();
        let (rate_median, _) = median_min(&mut rate);
        let best = rate.last().copied().unwrap_or(f64::NAN);
        let (ping_median, ping_min) = median_min(&mut ping);
        let _ = writeln!(report, "| {name} | {rate_median:.2} | {best:.2} | {ping_median:.1} | {ping_min:.1} |");
    }
    Ok(report)
}

fn figures(command: &mut Command, place: &Path) -> Result<Figures> {
    let out = command.current_dir(place).output().context("cannot start the client")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let mut numbers = text.split_whitespace().filter_map(|n| n.parse::<f64>().ok());
    match (out.status.success(), numbers.next(), numbers.next()) {
        (true, Some(gigabytes_a_second), Some(ping_micros)) => Ok(Figures { gigabytes_a_second, ping_micros }),
        _ => bail!("the client failed with {}: {}{}", out.status, text, String::from_utf8_lossy(&out.stderr)),
    }
}

/// First byte of a connection for round trips, and of one for throughput. Bytes that begin neither TLS nor HTTP, so that the
/// tunnel is an opaque one from the first on.
const PING: [u8; 1] = [1];
const STREAM: [u8; 1] = [2];

/// Answers [`PING`] with 64 bytes for each 64 bytes, [`STREAM`] with [`BYTES`] bytes.
fn serve(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut mode = [0u8; 1];
    if stream.read_exact(&mut mode).is_err() {
        return;
    }
    if mode == PING {
        let mut block = [0u8; 64];
        while stream.read_exact(&mut block).is_ok() && stream.write_all(&block).is_ok() {}
    } else {
        let block = vec![7u8; 1 << 18];
        let mut left = BYTES;
        while left > 0 && stream.write_all(&block).is_ok() {
            left = left.saturating_sub(1 << 18);
        }
    }
}

/// The client, run plain or inside: prints gigabytes a second and the median round trip in microseconds.
pub(crate) fn client(args: &[String]) -> Result<()> {
    let (Some(way), Some(port)) = (args.first(), args.get(1).and_then(|p| p.parse::<u16>().ok())) else {
        bail!("usage: bench-client direct|connect PORT");
    };
    let mut stream = dial(way, port)?;
    stream.write_all(&PING)?;
    let mut micros = Vec::with_capacity(PINGS);
    let mut block = [1u8; 64];
    for _ in 0..PINGS {
        let begin = Instant::now();
        stream.write_all(&block)?;
        stream.read_exact(&mut block)?;
        micros.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    drop(stream);
    let mut stream = dial(way, port)?;
    stream.write_all(&STREAM)?;
    let mut sink = vec![0u8; 1 << 20];
    let begin = Instant::now();
    let mut total = 0u64;
    while total < BYTES {
        let n = stream.read(&mut sink)?;
        if n == 0 {
            bail!("the stream ended after {total} bytes");
        }
        total += n as u64;
    }
    println!("{} {}", total as f64 / 1e9 / begin.elapsed().as_secs_f64(), median_min(&mut micros).0);
    Ok(())
}

fn dial(way: &str, port: u16) -> Result<TcpStream> {
    if way == "direct" {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        return Ok(stream);
    }
    let mut stream = TcpStream::connect("127.0.0.1:3128").context("no proxy on 127.0.0.1:3128")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
    let mut head = Vec::new();
    let mut byte = [0u8; 1];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    if !head.starts_with(b"HTTP/1.1 200") {
        bail!("the proxy refused: {}", String::from_utf8_lossy(&head));
    }
    Ok(stream)
}
