//! Throughput and latency of a tunnel beside a direct connection, over loopback, in one run and interleaved.
//!
//! `cargo run --release -p ringfence-egress --example tunnel_bench [seconds per cell]`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement, not a part of the program"
)]

use ringfence_egress::{Config, Doors, Engine};
use ringfence_policy::layer::Base;
use ringfence_policy::{Event, EventSink, Fragment, HostPath, HostPattern, HostRule, HostVerb, Layer, Origin};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Takes events and forgets them, after making each the line that a file would get.
struct Lines;

impl EventSink for Lines {
    fn record(&self, event: &Event) {
        std::hint::black_box(serde_json::to_vec(event).unwrap());
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0f64).clamp(0.1, 10.0);
    let cell = Duration::from_secs_f64(seconds);
    let source = server(|mut stream| {
        let part = vec![0u8; 1 << 20];
        let mut order = [0; 1];
        let _ = stream.read(&mut order);
        while stream.write_all(&part).is_ok() {}
    });
    let echo = server(|mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(count) = stream.read(&mut buffer) {
            if count == 0 || stream.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    });
    let site = server(|mut stream| {
        let part = vec![0u8; 1 << 20];
        let mut head = [0; 4096];
        let _ = stream.read(&mut head);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
        while stream.write_all(&part).is_ok() {}
    });
    let proxy = engine();
    println!("load before: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    let (mut direct, mut tunnel, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        direct.push(throughput(TcpStream::connect(source).unwrap(), cell));
        tunnel.push(throughput(connect(proxy, source), cell));
        plain.push(throughput(get(proxy, site), cell));
    }
    println!("plain HTTP body, MB/s {:>8.0}   (median of 5)", median(&mut plain));
    println!(
        "throughput, MB/s      direct {:>8.0}   CONNECT {:>8.0}   (medians of 5)",
        median(&mut direct),
        median(&mut tunnel)
    );
    let (mut direct, mut tunnel) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        direct.extend(round_trips(TcpStream::connect(echo).unwrap(), 4_000));
        tunnel.extend(round_trips(connect(proxy, echo), 4_000));
    }
    let (at, through) = (median(&mut direct), median(&mut tunnel));
    println!("round trip p50, us    direct {at:>8.1}   CONNECT {through:>8.1}   added {:>6.1}", through - at);
    println!("round trip p99, us    direct {:>8.1}   CONNECT {:>8.1}", at_rank(&direct, 0.99), at_rank(&tunnel, 0.99));
    let (mut direct, mut tunnel) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let start = Instant::now();
        round_trips(TcpStream::connect(echo).unwrap(), 1);
        direct.push(micros(start));
        let start = Instant::now();
        round_trips(connect(proxy, echo), 1);
        tunnel.push(micros(start));
    }
    let (at, through) = (median(&mut direct), median(&mut tunnel));
    println!("new connection, us    direct {at:>8.1}   CONNECT {through:>8.1}   added {:>6.1}", through - at);
    println!("load after: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
}

fn server(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// An engine that allows 127.0.0.2, on a thread of its own.
fn engine() -> SocketAddr {
    let (host, _) = HostPattern::parse("127.0.0.2:*", ringfence_policy::host_rule::Wide::Refused).unwrap();
    let rule = HostRule {
        host,
        ports: ringfence_policy::PortSet::All,
        verb: HostVerb::Allow,
        addresses: Vec::new(),
        origin: Origin::flag("--allow-host"),
        why: None,
    };
    let folder = HostPath::new("/home/t").unwrap();
    let base = Base { home: folder.clone(), workspace: folder, git_dirs: Vec::new(), uid: 1000 };
    let fragment = Fragment { hosts: vec![rule], ..Fragment::empty(Layer::CommandLine) };
    let (policy, _) = ringfence_policy::merge(&base, vec![fragment]);
    let config =
        Config { policy: Arc::new(policy), sink: Arc::new(Lines), own_addresses: Vec::new(), proxy_env: Vec::new() };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let doors = Doors { http: Some(listener.into()), ..Doors::default() };
            Engine::new(config).serve(doors, std::future::pending()).await.unwrap();
        });
    });
    address
}

fn connect(proxy: SocketAddr, target: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1);
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// A plain request through the proxy, whose answer begins to arrive.
fn get(proxy: SocketAddr, site: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.write_all(format!("GET http://{site}/ HTTP/1.1\r\nHost: {site}\r\n\r\n").as_bytes()).unwrap();
    stream
}

/// Megabytes a second that arrive.
fn throughput(mut stream: TcpStream, time: Duration) -> f64 {
    // A byte that is no HTTP and no TLS, so that the tunnel is opaque.
    stream.write_all(&[0]).unwrap();
    let mut buffer = vec![0; 1 << 20];
    let start = Instant::now();
    let mut total = 0u64;
    while start.elapsed() < time {
        total += stream.read(&mut buffer).unwrap() as u64;
    }
    total as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Microseconds of each round trip of 64 bytes.
fn round_trips(mut stream: TcpStream, count: usize) -> Vec<f64> {
    stream.set_nodelay(true).unwrap();
    let mut buffer = [0u8; 64];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        buffer[0] = 0;
        let start = Instant::now();
        stream.write_all(&buffer).unwrap();
        stream.read_exact(&mut buffer).unwrap();
        times.push(micros(start));
    }
    times
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    at_rank(values, 0.5)
}

/// The value at a rank of sorted values.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank between 0 and the length")]
fn at_rank(values: &[f64], rank: f64) -> f64 {
    values[((values.len() - 1) as f64 * rank) as usize]
}
