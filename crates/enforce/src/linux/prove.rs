//! The proof: attempts by the command's own process, under its final restrictions.

use super::error::Surprise;
use super::message::Plants;
use super::plant::at_unix_path;
use ringfence_plan::proof::{Attempt, ProofPlan, Row};
use ringfence_policy::HostPath;
use ringfence_sys::attempt::{self, Tried, UnixPlace};
use ringfence_sys::process::{self, Pid};
use ringfence_sys::{Errno, netns};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Tries all rows; the first that comes out wrong is returned with its number.
pub(crate) fn try_all(plan: &ProofPlan, plants: &Plants, scopes: bool) -> Result<(), (usize, Surprise)> {
    let mut unix = plants.unix.iter();
    for (number, row) in plan.rows.iter().enumerate() {
        let planted = if needs_unix_plant(row) { unix.next() } else { None };
        if let Some(surprise) = judge(row, try_one(row, plants, planted, scopes)) {
            return Err((number, surprise));
        }
    }
    Ok(())
}

/// Whether the launcher must listen at a path for this row.
pub(crate) fn needs_unix_plant(row: &Row) -> bool {
    matches!(row.attempt, Attempt::HostUnix(_))
}

fn judge(row: &Row, tried: Option<Tried>) -> Option<Surprise> {
    match (tried?, row.must_work) {
        (Ok(()), true) | (Err(_), false) => None,
        (Ok(()), false) => Some(Surprise::Worked),
        (Err(errno), true) => Some(Surprise::Failed(errno)),
    }
}

/// One attempt; `None` when its answer says nothing here.
fn try_one(row: &Row, plants: &Plants, planted: Option<&PathBuf>, scopes: bool) -> Option<Tried> {
    Some(match &row.attempt {
        Attempt::Read(path) => attempt::read(path.as_path()),
        Attempt::OpenWrite(path) => attempt::open_write(path.as_path()),
        Attempt::CreateIn(dir) => create_in(dir, row.must_work),
        Attempt::HostTcp => attempt::connect(netns::loopback_v4(plants.tcp)),
        Attempt::HostUdp => {
            // That it was taken by this namespace says nothing; whether it arrived is seen outside.
            let sent = attempt::send_datagram(netns::loopback_v4(plants.udp));
            if row.must_work { sent } else { return None }
        }
        Attempt::HostUnix(_) => {
            let path = planted?;
            at_unix_path(path, |place| attempt::connect_unix(UnixPlace::Path(place)))
        }
        Attempt::HostAbstract => attempt::connect_unix(UnixPlace::Abstract(&plants.abstract_name)),
        Attempt::Connect(ip, port) => match ip.parse::<IpAddr>() {
            Ok(ip) => attempt::connect(SocketAddr::new(ip, *port)),
            Err(_) => Err(Errno::INVAL),
        },
        Attempt::Socket(family, kind, protocol) => attempt::socket(*family, *kind, *protocol),
        Attempt::NewUserNamespace => attempt::new_user_namespace(),
        Attempt::IoUring => attempt::io_uring(),
        Attempt::TraceInit => {
            let init = Pid::INIT;
            let traced = attempt::trace(init);
            // Without scopes a signal to process 1 is allowed, and ignored by it (pid_namespaces(7)).
            if traced.is_err() && scopes { attempt::signal(init) } else { traced }
        }
        Attempt::SignalLauncher => {
            let pid = Pid::from_raw(plants.launcher)?;
            // A number this small belongs to a process inside.
            if pid.as_raw_nonzero() <= process::own_pid().as_raw_nonzero() {
                return None;
            }
            attempt::signal(pid)
        }
        Attempt::Mount => attempt::mount(std::path::Path::new("/")),
    })
}

/// Without a name first, which disturbs nobody who watches the folder. A full disk is no wall.
fn create_in(dir: &HostPath, must_work: bool) -> Tried {
    let full = |tried: &Tried| matches!(tried, Err(Errno::NOSPC | Errno::DQUOT));
    let unnamed = attempt::create_unnamed(dir.as_path());
    if unnamed.is_ok() || (must_work && full(&unnamed)) {
        return Ok(());
    }
    let name = format!(".ringfence-proof-{}", process::own_pid().as_raw_nonzero());
    let named = attempt::create_named(dir.join(name).as_path());
    if must_work && full(&named) { Ok(()) } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(attempt: Attempt, must_work: bool) -> Row {
        Row { name: "row".to_owned(), attempt, must_work }
    }

    fn table(row: Row) -> Result<(), (usize, Surprise)> {
        try_all(&ProofPlan { enabled: true, rows: vec![row] }, &Plants::default(), true)
    }

    #[test]
    fn outside_of_a_sandbox_the_rows_that_must_fail_are_surprises() {
        let dir = tempfile::tempdir().unwrap();
        let path = HostPath::new(dir.path()).unwrap();
        assert_eq!(table(row(Attempt::CreateIn(path.clone()), false)), Err((0, Surprise::Worked)));
        assert_eq!(table(row(Attempt::CreateIn(path.clone()), true)), Ok(()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
        let file = path.join("f");
        assert_eq!(table(row(Attempt::Read(file.clone()), true)), Err((0, Surprise::Failed(Errno::NOENT))));
        std::fs::write(file.as_path(), "kept").unwrap();
        assert_eq!(table(row(Attempt::OpenWrite(file.clone()), false)), Err((0, Surprise::Worked)));
        assert_eq!(std::fs::read_to_string(file.as_path()).unwrap(), "kept");
        assert_eq!(table(row(Attempt::Socket(1, 1, 0), false)), Err((0, Surprise::Worked)));
    }

    #[test]
    fn a_listener_that_can_be_reached_is_a_surprise() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let plants = Plants { tcp: listener.local_addr().unwrap().port(), ..Plants::default() };
        let plan = ProofPlan { enabled: true, rows: vec![row(Attempt::HostTcp, false)] };
        assert_eq!(try_all(&plan, &plants, true), Err((0, Surprise::Worked)));
    }
}
