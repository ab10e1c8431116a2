//! Servers that record what reaches them, a resolver that plays a script, and an engine between.

use ringfence_egress::{Config, Dialer, Doors, Engine, Pool, Resolve, Resolving, Tuning};
use ringfence_policy::layer::Base;
use ringfence_policy::{
    Event, EventSink, Fragment, HostName, HostPath, HostPattern, HostRule, HostVerb, Layer, Origin, PortRule, PortSet,
    UpstreamProxy,
};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The loopback address that stands for a public server.
pub(crate) const GOOD: &str = "127.0.0.2";
/// The pool of addresses that stand for names, in this rig.
pub(crate) const POOL: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 0);
/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Records events.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Value>>);

impl EventSink for Recorder {
    fn record(&self, event: &Event) {
        self.0.lock().unwrap().push(serde_json::to_value(event).unwrap());
    }
}

/// Answers from a list, one entry for each query; the last one stays.
#[derive(Default)]
pub(crate) struct Script {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Resolve for Script {
    fn resolve<'a>(&'a self, name: &'a HostName) -> Resolving<'a> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(name.as_text().to_owned());
            let mut answers = self.answers.lock().unwrap();
            let list = answers.get_mut(name.as_text()).ok_or_else(|| std::io::Error::other("no such name"))?;
            Ok(if list.len() > 1 { list.remove(0) } else { list[0].clone() })
        })
    }
}

/// What a rig is made of.
pub(crate) struct Setup {
    rules: Vec<HostRule>,
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    ports: Vec<u16>,
    pub(crate) host_ports: Vec<u16>,
    pub(crate) publish: Vec<u16>,
    pub(crate) upstream: Option<String>,
    pub(crate) proxy_env: Vec<(String, String)>,
    pub(crate) own: Vec<IpAddr>,
    pub(crate) tuning: Tuning,
}

impl Setup {
    /// Nothing is allowed; `port` is a port of the web, and one that the transparent door listens on.
    pub(crate) fn new(port: u16) -> Self {
        let mut tuning = Tuning::default();
        tuning.web_ports = vec![port];
        tuning.pool = Pool { v4: POOL, v4_size: 1 << 16, ..Pool::default() };
        Self {
            rules: Vec::new(),
            answers: HashMap::new(),
            ports: vec![port],
            host_ports: Vec::new(),
            publish: Vec::new(),
            upstream: None,
            proxy_env: Vec::new(),
            own: Vec::new(),
            tuning,
        }
    }

    /// A port that the transparent door listens on, and that carries any protocol.
    pub(crate) fn and_port(mut self, port: u16) -> Self {
        self.ports.push(port);
        self
    }

    /// Only these ports for the transparent door.
    pub(crate) fn ports_only(mut self, ports: &[u16]) -> Self {
        self.ports = ports.to_vec();
        self
    }

    pub(crate) fn rule(mut self, verb: HostVerb, host: &str, ports: &[u16], addresses: &[&str]) -> Self {
        let (host, _) = HostPattern::parse(host, ringfence_policy::host_rule::Wide::Forced).unwrap();
        let ports = if ports.is_empty() { PortSet::All } else { PortSet::List(ports.to_vec()) };
        let addresses = addresses.iter().map(|a| a.parse().unwrap_or_else(|_| ip(a).into())).collect();
        self.rules.push(HostRule { host, ports, verb, addresses, origin: Origin::flag("--allow-host"), why: None });
        self
    }

    /// Allows a name on ports, and lets it resolve to [`GOOD`], which it does.
    pub(crate) fn allow(self, host: &str, ports: &[u16]) -> Self {
        let setup = self.rule(HostVerb::Allow, host, ports, &[GOOD]);
        if host.contains('*') { setup } else { setup.answer(host, &[&[GOOD]]) }
    }

    /// What a name resolves to, query by query.
    pub(crate) fn answer(mut self, host: &str, answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|set| set.iter().map(|a| ip(a)).collect()).collect();
        self.answers.insert(host.to_owned(), answers);
        self
    }

    pub(crate) fn start(self) -> Rig {
        self.start_with(None)
    }

    pub(crate) fn start_with(self, dialer: Option<Arc<dyn Dialer>>) -> Rig {
        let origin = Origin::flag("--test");
        let base = Base {
            home: HostPath::new("/home/t").unwrap(),
            workspace: HostPath::new("/home/t/w").unwrap(),
            git_dirs: Vec::new(),
            uid: 1000,
        };
        let port_rule = |port: &u16| PortRule { port: *port, origin: origin.clone() };
        let fragment = Fragment {
            hosts: self.rules,
            host_ports: self.host_ports.iter().map(port_rule).collect(),
            publish: self.publish.iter().map(port_rule).collect(),
            upstream: self.upstream.map(|url| UpstreamProxy { url, origin: origin.clone() }),
            ..Fragment::empty(Layer::CommandLine)
        };
        let (policy, findings) = ringfence_policy::merge(&base, vec![fragment]);
        assert!(findings.is_empty(), "{findings:?}");

        let local = |ip: Ipv4Addr, port: u16| TcpListener::bind((ip, port)).unwrap();
        let loopback = Ipv4Addr::LOCALHOST;
        let (http, socks, dns_tcp) = (local(loopback, 0), local(loopback, 0), local(loopback, 0));
        let dns_udp = UdpSocket::bind((loopback, 0)).unwrap();
        let mut doors = Doors::default();
        let addresses =
            [http.local_addr(), socks.local_addr(), dns_tcp.local_addr(), dns_udp.local_addr()].map(Result::unwrap);
        for port in self.ports {
            // The first names that are looked up, an address of the pool that stands for none, and addresses that stand
            // for themselves.
            for last in [[127, 64, 1, 0], [127, 64, 1, 1], [127, 64, 1, 2], [127, 64, 9, 9], [127, 0, 0, 77]] {
                doors.transparent.push((port, local(Ipv4Addr::from(last), port).into()));
            }
        }
        let mut inward = HashMap::new();
        for port in self.host_ports {
            let listener = local(Ipv4Addr::new(127, 0, 0, 53), 0);
            inward.insert(port, listener.local_addr().unwrap());
            doors.host_ports.push((port, listener.into()));
        }
        doors.http = Some(http.into());
        doors.socks = Some(socks.into());
        doors.dns_tcp = Some(dns_tcp.into());
        doors.dns_udp = Some(dns_udp.into());

        let recorder = Arc::new(Recorder::default());
        let resolver = Arc::new(Script { answers: Mutex::new(self.answers), asked: Mutex::default() });
        let (stop, stopped) = channel::<()>();
        let (ready, is_ready) = channel::<std::io::Result<()>>();
        let config = Config {
            policy: Arc::new(policy),
            sink: Arc::clone(&recorder) as Arc<dyn EventSink>,
            own_addresses: self.own,
            proxy_env: self.proxy_env,
        };
        let (script, tuning, publish) = (Arc::clone(&resolver), self.tuning, self.publish);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let engine = Engine::with(config, script, tuning);
                if let Some(dialer) = dialer {
                    ready.send(engine.publish(&publish, dialer).await).unwrap();
                } else {
                    ready.send(Ok(())).unwrap();
                }
                let until = async {
                    let waiting = tokio::task::spawn_blocking(move || stopped.recv());
                    let _ = waiting.await;
                };
                engine.serve(doors, until).await.unwrap();
            });
        });
        is_ready.recv().unwrap().unwrap();
        let [http, socks, dns_tcp, dns_udp] = addresses;
        Rig { http, socks, dns_tcp, dns_udp, inward, recorder, resolver, stop: Some(stop), thread: Some(thread) }
    }
}

/// A running engine.
pub(crate) struct Rig {
    pub(crate) http: SocketAddr,
    pub(crate) socks: SocketAddr,
    pub(crate) dns_tcp: SocketAddr,
    pub(crate) dns_udp: SocketAddr,
    pub(crate) inward: HashMap<u16, SocketAddr>,
    recorder: Arc<Recorder>,
    pub(crate) resolver: Arc<Script>,
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Rig {
    pub(crate) fn events(&self) -> Vec<Value> {
        self.recorder.0.lock().unwrap().clone()
    }

    /// Waits for an event.
    pub(crate) fn event(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(event) = self.events().into_iter().find(|e| matches(e)) {
                return event;
            }
            assert!(Instant::now() < until, "no event: {what}; there are {:#?}", self.events());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a refusal with this code.
    pub(crate) fn denied(&self, code: &str) -> Value {
        self.event(code, |e| e["event"] == "denied" && e["code"] == code)
    }

    /// How many refusals there are.
    pub(crate) fn denials(&self) -> usize {
        self.events().iter().filter(|e| e["event"] == "denied").count()
    }

    /// Waits until each `allowed` has its `closed`.
    pub(crate) fn settled(&self) {
        let until = Instant::now() + PATIENCE;
        let count = |what: &str| self.events().iter().filter(|e| e["event"] == what).count();
        while count("allowed") != count("closed") {
            assert!(Instant::now() < until, "{:#?}", self.events());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the engine.
    pub(crate) fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// CONNECT: the whole head of the answer, and the socket.
    pub(crate) fn connect(&self, target: impl AsRef<[u8]>) -> (String, TcpStream) {
        let target = target.as_ref();
        let mut stream = dial(self.http);
        stream.write_all(&[b"CONNECT ", target, b" HTTP/1.1\r\nHost: ", target, b"\r\n\r\n"].concat()).unwrap();
        (head(&mut stream), stream)
    }

    /// SOCKS5: the reply's code, and the socket.
    pub(crate) fn socks(&self, kind: u8, host: &[u8], port: u16) -> (u8, TcpStream) {
        let mut stream = dial(self.socks);
        stream.write_all(&[5, 1, 0]).unwrap();
        let mut method = [0; 2];
        stream.read_exact(&mut method).unwrap();
        assert_eq!(method, [5, 0]);
        let length: &[u8] = if kind == 3 { &[host.len() as u8] } else { &[] };
        stream.write_all(&[&[5, 1, 0, kind], length, host, &port.to_be_bytes()].concat()).unwrap();
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).unwrap();
        (reply[1], stream)
    }

    /// Looks a name up, and connects to the address that it got.
    pub(crate) fn transparent(&self, name: &str, port: u16) -> TcpStream {
        let address = self.lookup(name, 1).expect("an address");
        dial(SocketAddr::new(address, port))
    }

    /// One query over UDP: the address in the answer.
    pub(crate) fn lookup(&self, name: &str, kind: u16) -> Option<IpAddr> {
        let reply = self.query(&query(name, kind));
        address_of(&reply)
    }

    pub(crate) fn query(&self, message: &[u8]) -> Vec<u8> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(message, self.dns_udp).unwrap();
        let mut reply = [0; 1500];
        let count = socket.recv(&mut reply).unwrap();
        reply[..count].to_vec()
    }

    /// Sends bytes to the HTTP door and reads until it closes.
    pub(crate) fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = dial(self.http);
        stream.write_all(bytes.as_ref()).unwrap();
        rest(&mut stream)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

pub(crate) fn dial(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads to the end; a reset is an end, and says so.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if let Err(error) = end {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{text}");
        text.push_str("(reset)");
    }
    text
}

/// Reads to the end, as bytes.
pub(crate) fn rest_bytes(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Reads a head, and not a byte more.
pub(crate) fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&bytes)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub(crate) fn query(name: &str, kind: u16) -> Vec<u8> {
    let mut out = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|l| !l.is_empty()) {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out
}

/// The address of the one answer of a reply without EDNS.
pub(crate) fn address_of(reply: &[u8]) -> Option<IpAddr> {
    if reply[7] == 0 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([reply[reply.len() - 18], reply[reply.len() - 17]]));
    if length == 16 {
        let octets: [u8; 16] = reply[reply.len() - 16..].try_into().unwrap();
        return Some(IpAddr::from(octets));
    }
    let octets: [u8; 4] = reply[reply.len() - 4..].try_into().unwrap();
    Some(IpAddr::from(octets))
}

/// A ClientHello with these extensions, in records of at most `size` bytes.
pub(crate) fn hello_in(extensions: &[(u16, Vec<u8>)], size: usize) -> Vec<u8> {
    let length = |n: usize| (n as u16).to_be_bytes();
    let mut list = Vec::new();
    for (kind, data) in extensions {
        list.extend_from_slice(&[&kind.to_be_bytes()[..], &length(data.len()), data].concat());
    }
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &length(list.len()), &list].concat();
    let message = [&[1, 0][..], &length(body.len()), &body].concat();
    message.chunks(size).flat_map(|part| [&[0x16, 3, 1][..], &length(part.len()), part].concat()).collect()
}

pub(crate) fn sni(name: &str) -> (u16, Vec<u8>) {
    let length = |n: usize| (n as u16).to_be_bytes();
    (0, [&length(name.len() + 3)[..], &[0], &length(name.len()), name.as_bytes()].concat())
}

/// A ClientHello for a name.
pub(crate) fn hello(name: &str) -> Vec<u8> {
    hello_in(&[(10, vec![0, 2, 0, 29]), sni(name)], 16_000)
}

/// What a server does with a connection.
#[derive(Clone)]
pub(crate) enum Manner {
    /// Sends back what it gets.
    Echo,
    /// Says this first, then sends back what it gets.
    Banner(&'static [u8]),
    /// Answers each HTTP request with this.
    Http(&'static str),
    /// Reads one head, sends this, and closes.
    Once(&'static [u8]),
    /// Reads and says nothing.
    Silent,
}

/// A server that records.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<Mutex<Vec<Vec<u8>>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A server on [`GOOD`].
    pub(crate) fn good(manner: Manner) -> Self {
        Self::at(SocketAddr::new(ip(GOOD), 0), manner)
    }

    pub(crate) fn at(address: SocketAddr, manner: Manner) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, heard) = (Arc::clone(&connections), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, heard, manner) = (Arc::clone(&seen), Arc::clone(&heard), manner.clone());
                thread::spawn(move || Self::serve(stream, &seen, &heard, &manner));
            }
        });
        Self { address, connections, requests }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// All bytes that reached it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.connections.lock().unwrap().concat()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// All whole requests that reached it.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Asserts that nothing reached it, after a moment in which it could have.
    pub(crate) fn saw_nothing(&self) {
        thread::sleep(Duration::from_millis(30));
        assert_eq!(String::from_utf8_lossy(&self.bytes()), "");
    }

    fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Vec<u8>>>, heard: &Mutex<Vec<String>>, manner: &Manner) {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(Vec::new());
            seen.len() - 1
        };
        if let Manner::Banner(banner) = manner {
            stream.write_all(banner).unwrap();
        }
        let mut buffer = vec![0; 1 << 16];
        let mut unread = Vec::new();
        while let Ok(count) = stream.read(&mut buffer) {
            if count == 0 {
                break;
            }
            // A bounded record, so that bulk does not fill the memory.
            let mut seen = seen.lock().unwrap();
            if seen[number].len() < 1 << 20 {
                seen[number].extend_from_slice(&buffer[..count]);
            }
            drop(seen);
            match manner {
                Manner::Echo | Manner::Banner(_) => {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
                Manner::Silent => {}
                Manner::Http(answer) => {
                    unread.extend_from_slice(&buffer[..count]);
                    while let Some(length) = request_length(&unread) {
                        let request: Vec<u8> = unread.drain(..length).collect();
                        heard.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                }
                Manner::Once(answer) => {
                    unread.extend_from_slice(&buffer[..count]);
                    if unread.windows(4).any(|w| w == b"\r\n\r\n") {
                        heard.lock().unwrap().push(String::from_utf8_lossy(&unread).into_owned());
                        stream.write_all(answer).unwrap();
                        break;
                    }
                }
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// The length of the first whole request, read as a plain server reads it.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    if text.contains("transfer-encoding: chunked") {
        let end = bytes[head..].windows(5).position(|w| w == b"0\r\n\r\n")?;
        return Some(head + end + 5);
    }
    let length = text.lines().find_map(|l| l.strip_prefix("content-length: ")).map_or(0, |l| l.trim().parse().unwrap());
    (bytes.len() >= head + length).then_some(head + length)
}

/// An answer that every HTTP server of the rig gives.
pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Dials plain loopback ports, in the place of process 1.
pub(crate) struct Inside(pub(crate) Mutex<Vec<u16>>, pub(crate) u16);

impl Dialer for Inside {
    fn dial(&self, port: u16) -> std::io::Result<std::os::fd::OwnedFd> {
        self.0.lock().unwrap().push(port);
        Ok(TcpStream::connect((Ipv4Addr::new(127, 0, 0, 2), self.1))?.into())
    }
}
