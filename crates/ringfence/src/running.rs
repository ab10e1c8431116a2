//! A run: where the walls and the network engine meet.

use crate::denials::Denials;
use crate::error::Error;
use crate::own_addresses;
use crate::sandbox::Sandbox;
use ringfence_boundary::{Boundary, Process};
use ringfence_egress::{Config, Dialer, Doors, Engine};
use ringfence_enforce::store::Lease;
use ringfence_enforce::{self as enforce, DialId, Happened, Listener, Listens};
use ringfence_policy::event::EventKind;
use ringfence_policy::{Event, EventSink, HomeMode};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// How long a connection to a published port waits for the sandbox.
const DIAL_PATIENCE: Duration = Duration::from_secs(10);

/// A command that runs behind its walls. Dropping it ends everything inside.
pub struct Running {
    wall: enforce::Running,
    /// `None`: there is no way out, so no engine is made.
    doors: Option<(Doors, Config, Vec<u16>)>,
    published: Vec<TcpListener>,
    sink: Arc<dyn EventSink>,
    denials: Denials,
    begin: Instant,
    proved: Option<Proved>,
    _home: Option<Lease>,
}

/// What the proof of the walls took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proved {
    /// How many attempts were made.
    pub rows: usize,
    /// How long that took.
    pub time: Duration,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The exit status to pass on: the command's own; 128+n when signal n ended it; 124 when its time was over.
    pub status: u8,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether the wall-time limit ended it.
    pub timed_out: bool,
    /// Whether the sandbox itself ended before the command did, which nothing inside can bring about by the rules.
    pub collapsed: bool,
    /// How long it ran.
    pub time: Duration,
    /// What was refused.
    pub denials: Denials,
}

impl Running {
    pub(crate) fn start(sandbox: Sandbox) -> Result<Self, Error> {
        let Sandbox { explanation, plan, command, env, terminal, sink, denials, store } = sandbox;
        let policy = &explanation.policy;
        let home = match policy.files.home.mode {
            HomeMode::Private => Some(store.lease_home(&policy.workspace)?),
            HomeMode::Visible | HomeMode::Empty => None,
        };
        if plan.proof.enabled {
            store.decoy()?;
        }
        // A port that is taken is found out before anything is started.
        let ports: Vec<u16> = policy.network.publish.iter().map(|rule| rule.port).collect();
        let published = ports
            .iter()
            .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)))
            .zip(&ports)
            .map(|(bound, port)| bound.map_err(|error| Error::Publish { port: *port, error }))
            .collect::<Result<Vec<_>, _>>()?;
        let Some((program, args)) = command.split_first() else { return Err(Error::NoCommand) };
        let begin = Instant::now();
        sink.record(&Event::now(EventKind::Started {
            program: program_name(program),
            workspace: policy.workspace.to_string(),
            presets: policy.presets.iter().map(|preset| preset.name.clone()).collect(),
            status: plan.status.iter().map(|layer| (layer.layer.to_owned(), layer.status.word().to_owned())).collect(),
        }));
        let command = enforce::Command { program: program.clone(), args: args.to_vec() };
        let io = enforce::IoSetup { terminal };
        let mut wall = Process.start(&plan, &command, io).map_err(|error| crate::error::wall(error, &env))?;
        let proved = wall.proved().map(|p| Proved { rows: p.rows, time: Duration::from_micros(p.micros.into()) });
        if let Some(proved) = proved {
            let micros = u64::try_from(proved.time.as_micros()).unwrap_or(u64::MAX);
            sink.record(&Event::now(EventKind::Proved { rows: proved.rows, micros }));
        }
        let listeners = wall.take_listeners();
        let doors = (!listeners.is_empty() || !ports.is_empty()).then(|| {
            let config = Config {
                policy: Arc::new(explanation.policy),
                sink: Arc::clone(&sink),
                own_addresses: own_addresses::find(),
                proxy_env: proxy_env(&env),
            };
            (doors(listeners), config, ports)
        });
        Ok(Self { wall, doors, published, sink, denials, begin, proved, _home: home })
    }

    /// What the proof took; `None` when it was skipped.
    pub fn proved(&self) -> Option<Proved> {
        self.proved
    }

    /// Serves the doors, passes signals and the terminal on, and waits for the end.
    ///
    /// # Errors
    /// The kernel refuses to wait, or the doors cannot be served; everything inside is ended then.
    pub fn wait(self) -> Result<Ending, Error> {
        let Self { wall, doors, published, sink, denials, begin, proved: _, _home } = self;
        let outcome = match doors {
            None => wall.wait_blocking()?,
            Some((doors, config, ports)) => {
                let serve = || -> Result<enforce::Outcome, Error> {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        // For names that are resolved and published ports that are dialled; one at a time is enough.
                        .max_blocking_threads(8)
                        .build()
                        .map_err(|error| Error::Doors { error })?;
                    let outcome = runtime.block_on(drive(wall, doors, config, ports, published));
                    // A name that is still being resolved keeps nobody waiting.
                    runtime.shutdown_background();
                    outcome
                };
                serve()?
            }
        };
        let time = begin.elapsed();
        let signal = match outcome {
            enforce::Outcome::Signaled(signal) => Some(signal),
            _ => None,
        };
        let status = outcome.exit_code();
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        sink.record(&Event::now(EventKind::Exited { status: i32::from(status), signal, millis }));
        let timed_out = outcome == enforce::Outcome::TimeOut;
        let collapsed = matches!(outcome, enforce::Outcome::Collapsed(_));
        Ok(Ending { status, signal, timed_out, collapsed, time, denials })
    }
}

fn program_name(program: &OsString) -> String {
    let name = std::path::Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

/// The variables that name a parent proxy; the engine uses them only where the policy says so.
fn proxy_env(env: &[(OsString, OsString)]) -> Vec<(String, String)> {
    const NAMES: [&str; 4] = ["https_proxy", "http_proxy", "all_proxy", "no_proxy"];
    env.iter()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
        .filter(|(name, _)| NAMES.contains(&name.to_ascii_lowercase().as_str()))
        .collect()
}

/// The listeners in the engine's words.
fn doors(listeners: Vec<Listener>) -> Doors {
    let mut doors = Doors::default();
    for Listener { listens, port, fd } in listeners {
        match listens {
            Listens::TransparentV4 | Listens::TransparentV6 => doors.transparent.push((port, fd)),
            Listens::DnsUdp => doors.dns_udp = Some(fd),
            Listens::DnsTcp => doors.dns_tcp = Some(fd),
            Listens::Http => doors.http = Some(fd),
            Listens::Socks => doors.socks = Some(fd),
            Listens::HostPortV4 | Listens::HostPortV6 => doors.host_ports.push((port, fd)),
        }
    }
    doors
}

/// A connection that the engine wants inside.
struct Wanted {
    port: u16,
    answer: mpsc::Sender<io::Result<OwnedFd>>,
}

/// Asks the supervisor, which alone talks to process 1, for connections inside.
struct AskSupervisor(UnboundedSender<Wanted>);

impl Dialer for AskSupervisor {
    fn dial(&self, port: u16) -> io::Result<OwnedFd> {
        let (answer, answered) = mpsc::channel();
        let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
        self.0.send(Wanted { port, answer }).map_err(|_| gone())?;
        answered.recv_timeout(DIAL_PATIENCE).map_err(|_| gone())?
    }
}

/// Supervises the walls and serves the doors until the run ends.
async fn drive(
    mut wall: enforce::Running,
    doors: Doors,
    config: Config,
    ports: Vec<u16>,
    published: Vec<TcpListener>,
) -> Result<enforce::Outcome, Error> {
    let failed = |error| Error::Doors { error };
    let (asks, mut wanted) = unbounded_channel();
    let engine = Engine::new(config);
    let published = ports.into_iter().zip(published.into_iter().map(OwnedFd::from)).collect();
    engine.publish_on(published, Arc::new(AskSupervisor(asks))).map_err(failed)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serve = engine.serve(doors, async {
        // Both a word and the loss of its sender mean the end.
        let _ = stopped.await;
    });
    let supervise = supervise(&mut wall, &mut wanted);
    tokio::pin!(serve, supervise);
    let outcome = tokio::select! {
        outcome = &mut supervise => outcome?,
        // The doors are served as long as the run lasts; their end is a failure, and fails closed.
        served = &mut serve => {
            return Err(failed(served.err().unwrap_or_else(|| io::Error::other("the engine ended before the run"))));
        }
    };
    let _ = stop.send(());
    let _ = serve.await;
    Ok(outcome)
}

async fn supervise(
    wall: &mut enforce::Running,
    wanted: &mut UnboundedReceiver<Wanted>,
) -> Result<enforce::Outcome, Error> {
    let failed = |error| Error::Doors { error };
    let fd = wall.as_fd().try_clone_to_owned().map_err(failed)?;
    #[allow(
        deprecated,
        reason = "its replacement is unsafe for types that may lie about their descriptor; this one owns it"
    )]
    let ready = AsyncFd::new(fd).map_err(failed)?;
    let mut waiting: HashMap<DialId, mpsc::Sender<io::Result<OwnedFd>>> = HashMap::new();
    loop {
        let turn = wall.turn()?;
        for happened in turn.happened {
            match happened {
                Happened::Finished(outcome) => return Ok(outcome),
                Happened::Dialed { id, connection } => {
                    if let Some(answer) = waiting.remove(&id) {
                        // Where nobody waits any more, the connection is closed.
                        let _ = answer.send(connection.map_err(io::Error::from));
                    }
                }
                Happened::Stopped => {}
            }
        }
        if turn.more {
            tokio::task::yield_now().await;
            continue;
        }
        let deadline = wall.deadline();
        let due = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Readiness is taken away before the next turn, so that what comes during the turn is not missed.
            guard = ready.readable() => guard.map_err(failed)?.clear_ready(),
            Some(Wanted { port, answer }) = wanted.recv() => {
                let id = wall.dial(port)?;
                waiting.insert(id, answer);
            }
            () = due => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_proof_connects_where_the_engine_knows_it() {
        assert_eq!(ringfence_plan::doors::PROBE_V4, ringfence_egress::PROBE.to_string());
    }
}
