//! Real work with real programs: version control over both transports, package managers with the presets as they ship,
//! servers with clients, databases, and programs that know nothing of proxies.

use crate::fresh::{Env, Fresh};
use crate::run::{self, Ran};
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Ground, Stage, Who};
use crate::usability::{has_program, registry_env, work_env};
use crate::wall::{Spec, Wall};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

type Check = fn(&Stage, &Fresh) -> Result<(), String>;

/// Name, what it needs, whether it needs the pretended outside, the check.
const CHECKS: &[(&str, &[&str], bool, Check)] = &[
    ("git_http", &["git"], true, git_http),
    ("git_https", &["git", "openssl"], true, git_https),
    ("git_ssh", &["git", "ssh", "sshd"], true, git_ssh),
    ("clients-that-know-no-proxy", &["curl", "python3", "node"], true, clients),
    ("java-client", &["javac"], true, java_client),
    ("npm_install_and_server", &["npm", "node", "curl"], false, npm),
    ("pip_install_and_server", &["python3", "curl"], false, pip),
    ("cargo_build", &["cargo", "gcc"], false, cargo),
    ("postgresql", &["psql"], false, postgresql),
    ("make_many", &["make", "gcc"], false, make_many),
    ("tmux_with_editor", &["tmux", "vim"], false, tmux),
    ("sqlite_writers", &["sqlite3"], false, sqlite),
];

pub fn collect(trials: &mut Vec<Trial>) {
    for who in [Who::User, Who::Root] {
        for (name, needs, world, check) in CHECKS {
            trials.push(Trial::new(format!("work::{}::{name}", who.name()), Cost::Slow, move |stage| {
                if let Some(why) = stage.lacks(who, *world) {
                    return Outcome::Skipped(why);
                }
                if let Some(missing) = needs.iter().find(|p| !has_program(stage, p)) {
                    return Outcome::Skipped(format!("{missing} is not installed"));
                }
                if *name == "postgresql" && who == Who::Root {
                    return Outcome::Skipped("PostgreSQL does not run as root".into());
                }
                match check(stage, &Fresh::new(stage, who, name)) {
                    Ok(()) => Outcome::Passed(String::new()),
                    Err(why) => Outcome::Failed(why),
                }
            }));
        }
    }
}

/// A shell text behind the wall, with the flags and variables that a case needs.
struct Job<'a> {
    ground: Ground,
    flags: &'a [&'a str],
    text: &'a str,
    more: Env,
    limit: u64,
}

fn go(stage: &Stage, fresh: &Fresh, wall: Wall, job: &Job) -> Ran {
    let spec = Spec { flags: job.flags.iter().map(|s| (*s).to_owned()).collect(), ..Spec::default() };
    let argv = wall.argv(stage, fresh, &spec, &["bash", "-c", job.text].map(str::to_owned));
    let mut env = work_env(stage, fresh);
    if job.ground == Ground::Host {
        registry_env(&mut env);
    }
    env.extend(job.more.clone());
    run::run(&mut stage.command(fresh.who, job.ground, &fresh.ws, &env, &argv), Duration::from_secs(job.limit))
}

fn on_host(stage: &Stage, who: Who, fresh: &Fresh, text: &str) -> Ran {
    run::run(
        &mut stage.command(who, Ground::Host, &fresh.ws, &fresh.env(stage), &["bash", "-c", text].map(str::to_owned)),
        Duration::from_secs(60),
    )
}

fn want(good: bool, what: &str, ran: &Ran) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("{what}\n{}", ran.show())) }
}

/// The host that no rule names saw nothing; without a wall it must have seen something.
fn unseen(stage: &Stage, fresh: &Fresh, ran: &Ran) -> Result<(), String> {
    let seen = !stage.seen_outside(&format!("no-{}", fresh.mark)).is_empty();
    want(seen == (stage.wall == Wall::Nothing), "whether a host that no rule names was reached", ran)
}

// --- git ----------------------------------------------------------------------------------------------------------------

/// A bare repository with one commit, which the servers of the pretended outside offer.
fn repository(stage: &Stage, fresh: &Fresh) -> Result<PathBuf, String> {
    let path = stage.base.join("git").join(format!("{}.git", fresh.mark));
    let text = format!(
        "set -e; git init -q --bare -b main {0}; git -C {0} config http.receivepack true; git clone -q {0} seed 2>/dev/null; cd seed; echo first > README; git add .; \
         git -c user.name=a -c user.email=a@b.test commit -qm first; git push -q origin HEAD:main; cd ..; rm -rf seed; git -C {0} update-server-info",
        path.display()
    );
    fs::create_dir_all(&path).map_err(|e| e.to_string())?;
    stage.give(Who::User, &path);
    let seed = Fresh::new(stage, Who::User, "seed");
    let r = on_host(stage, Who::User, &seed, &text);
    want(r.ok(), "could not make the repository", &r)?;
    Ok(path)
}

const SESSION: &str = "set -e; git clone -q \"$GITURL\" c; cd c; cat README; echo more > more; git add more; git -c user.name=a -c user.email=a@b.test commit -qm \"by $MARK\"; git push -q origin HEAD:main; git fetch -q; git status --porcelain | wc -l";

fn session(stage: &Stage, fresh: &Fresh, url: String, flags: &[&str], more: Env) -> Result<(), String> {
    let repo = repository(stage, fresh)?;
    let mut env = more;
    env.insert(
        "GITURL".into(),
        url.replace("REPO", &format!("{}.git", fresh.mark)).replace("PATH", &repo.to_string_lossy()),
    );
    let job = Job { ground: Ground::World, flags, text: SESSION, more: env.clone(), limit: 60 };
    let r = go(stage, fresh, stage.wall, &job);
    want(r.ok() && r.out == "first\n0\n", "clone, commit, push, fetch", &r)?;
    let log = on_host(stage, Who::User, fresh, &format!("git -C {} log -1 --format=%s main", repo.display()));
    want(log.out.contains(&fresh.mark), "the push arrived", &log)?;
    // The same without the grant must fail, and be quick about it.
    let job = Job {
        ground: Ground::World,
        flags: &["--allow-host", "other.test"],
        text: "timeout 20 git ls-remote \"$GITURL\"",
        more: env,
        limit: 30,
    };
    let r = go(stage, fresh, stage.wall, &job);
    let _ = fs::remove_dir_all(repo);
    want(
        stage.wall == Wall::Nothing || (r.status != 0 && r.status != 124 && !r.out.contains("refs/")),
        "without the grant it is refused at once",
        &r,
    )
}

fn git_http(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    session(
        stage,
        fresh,
        "http://git.test:8001/REPO".into(),
        &["--allow-host", "git.test:8001", "--allow-host", "10.9.9.9:8001"],
        Env::new(),
    )
}

fn git_https(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let cert = stage.base.join("world/cert.pem").to_string_lossy().into_owned();
    let more = Env::from([("GIT_SSL_CAINFO".to_owned(), cert)]);
    session(
        stage,
        fresh,
        "https://tlsgit.test/REPO".into(),
        &["--allow-host", "tlsgit.test", "--allow-host", "10.9.9.11"],
        more,
    )
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn git_ssh(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let port = if fresh.who == Who::Root { "2222" } else { "22" };
    let dir = fresh.state.join("sshd");
    let text = format!(
        "set -e; mkdir -p {d} /run/sshd; chmod 755 {d}; ssh-keygen -q -t ed25519 -N '' -f {d}/host; ssh-keygen -q -t ed25519 -N '' -f {d}/user; cp {d}/user.pub {d}/authorized; chmod 644 {d}/authorized; chmod 644 {d}/user",
        d = dir.display()
    );
    let r = run::run(
        &mut stage.command(
            Who::Root,
            Ground::Outside,
            &fresh.ws,
            &fresh.env(stage),
            &["bash", "-c", &text].map(str::to_owned),
        ),
        Duration::from_secs(30),
    );
    want(r.ok(), "could not make keys", &r)?;
    let config = fresh.note(stage, "sshd_config", &format!(
        "ListenAddress 10.9.9.9:{port}\nHostKey {d}/host\nAuthorizedKeysFile {d}/authorized\nStrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n", d = dir.display()
    ));
    let argv = ["/usr/sbin/sshd", "-D", "-e", "-f", &config.to_string_lossy()].map(str::to_owned);
    let mut sshd = stage.command(Who::Root, Ground::Outside, &fresh.ws, &fresh.env(stage), &argv);
    let _sshd = Killed(
        sshd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?,
    );

    // The key is in an agent outside; inside there is only its socket.
    let agent = fresh.out.join("agent.sock");
    let key = fs::read_to_string(dir.join("user")).map_err(|e| e.to_string())?;
    let key_file = fresh.note(stage, "key", &key);
    let text = format!(
        "chmod 600 {k}; ssh-agent -a {a} > agent.out; sed -n 's/.*Agent pid \\([0-9]*\\).*/\\1/p' agent.out >> $STATE/pids; SSH_AUTH_SOCK={a} ssh-add -q {k}",
        k = key_file.display(),
        a = agent.display()
    );
    let r = run::run_into(
        &mut stage.command(
            fresh.who,
            Ground::Host,
            &fresh.ws,
            &fresh.env(stage),
            &["bash", "-c", &text].map(str::to_owned),
        ),
        &fresh.state.join("agent.log"),
        Duration::from_secs(20),
        None,
    )
    .map_err(|e| e.to_string())?;
    want(r.ok(), "could not start an agent", &r)?;
    let public = fs::read_to_string(dir.join("host.pub")).map_err(|e| e.to_string())?;
    fresh.folder(stage, &fresh.home.join(".ssh"));
    let name = if port == "22" { "git.test".to_owned() } else { format!("[git.test]:{port}") };
    fresh.put(stage, &fresh.home.join(".ssh/known_hosts"), format!("{name} {public}"));
    fresh.put(stage, &fresh.home.join(".ssh/id_ed25519"), "not for anybody");

    let more = Env::from([
        ("SSH_AUTH_SOCK".to_owned(), agent.to_string_lossy().into_owned()),
        (
            "GIT_SSH_COMMAND".to_owned(),
            format!(
                "ssh -o UserKnownHostsFile={}/.ssh/known_hosts -o StrictHostKeyChecking=yes -o ConnectTimeout=10",
                fresh.home.display()
            ),
        ),
    ]);
    let (host, address, socket) =
        (format!("git.test:{port}"), format!("10.9.9.9:{port}"), agent.to_string_lossy().into_owned());
    let flags = ["--allow-host", &host, "--allow-host", &address, "--unix", &socket, "--env", "SSH_AUTH_SOCK"];
    session(stage, fresh, format!("ssh://{}@git.test:{port}PATH", stage.account().name), &flags, more)
}

// --- programs and their proxies -----------------------------------------------------------------------------------------

const CLIENTS: &str = r#"
curl -s -m 8 --noproxy '*' http://api.good.test/curl-$MARK; echo
curl -s -m 8 http://api.good.test/curlproxy-$MARK; echo
curl -sk -m 8 https://tls.good.test/curltls-$MARK; echo
wget -q -T 8 -O - http://api.good.test/wget-$MARK; echo
python3 -c "import urllib.request as u;print(u.urlopen('http://api.good.test/urllib-$MARK',timeout=8).read().decode())"
python3 -c "import http.client as h;c=h.HTTPConnection('api.good.test',timeout=8);c.request('GET','/httpclient-$MARK');print(c.getresponse().read().decode())"
node -e "fetch('http://api.good.test/fetch-$MARK').then(r=>r.text()).then(console.log)"
node -e "require('http').get('http://api.good.test/nodehttp-$MARK',r=>r.pipe(process.stdout).on('finish',()=>0))"; echo
exec 3<>/dev/tcp/api.good.test/80; printf 'GET /bash-%s HTTP/1.0\r\nHost: api.good.test\r\n\r\n' $MARK >&3; grep -m 1 -a CANARY <&3
curl -s -m 8 --socks5-hostname 127.0.0.1:1080 http://api.good.test/socks-$MARK; echo
for c in "curl -s -m 8 --noproxy * http://evil.test/no-$MARK" "wget -q -T 8 -t 1 -O - http://evil.test/no-$MARK" "node -e fetch('http://evil.test/no-$MARK').then(r=>r.text()).then(console.log)"; do timeout 15 $c 2>/dev/null | grep CANARY; done
true"#;

fn clients(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let flags = [
        "--allow-host",
        "api.good.test",
        "--allow-host",
        "tls.good.test",
        "--allow-host",
        "10.9.9.9",
        "--allow-host",
        "10.9.9.10",
    ];
    let r = go(
        stage,
        fresh,
        stage.wall,
        &Job { ground: Ground::World, flags: &flags, text: CLIENTS, more: Env::new(), limit: 120 },
    );
    let names = ["curl", "curlproxy", "curltls", "wget", "urllib", "httpclient", "fetch", "nodehttp", "bash", "socks"];
    let lacking: Vec<_> = names.iter().filter(|n| !r.out.contains(&format!("CANARY-{n}-{}", fresh.mark))).collect();
    want(lacking.is_empty(), &format!("not reached by {lacking:?}"), &r)?;
    unseen(stage, fresh, &r)
}

const JAVA: &str = r#"
printf 'import java.net.*;import java.net.http.*;public class A{public static void main(String[] a)throws Exception{
for(String u:a){try{System.out.println(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(u)).build(),HttpResponse.BodyHandlers.ofString()).body());}catch(Exception e){System.out.println("refused");}}
System.out.println(new String(new URL(a[0]+"-old").openStream().readAllBytes()));}}' > A.java && javac A.java && java A http://api.good.test/java-$MARK http://evil.test/no-$MARK"#;

fn java_client(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let flags = ["--allow-host", "api.good.test", "--allow-host", "10.9.9.9", "--preset", "java"];
    let r = go(
        stage,
        fresh,
        stage.wall,
        &Job { ground: Ground::World, flags: &flags, text: JAVA, more: Env::new(), limit: 90 },
    );
    want(
        r.out.contains(&format!("CANARY-java-{}\n", fresh.mark)) && r.out.contains("-old"),
        "both of Java's clients",
        &r,
    )?;
    unseen(stage, fresh, &r)
}

// --- package managers, with the presets as they ship -------------------------------------------------------------------------

/// Runs behind the wall; when that fails and the same fails without a wall, the machine cannot show it.
fn work(stage: &Stage, fresh: &Fresh, flags: &[&str], text: &str, says: &str, limit: u64) -> Result<(), String> {
    let job = Job { ground: Ground::Host, flags, text, more: Env::new(), limit };
    let r = go(stage, fresh, stage.wall, &job);
    want(r.ok() && r.out.contains(says), &format!("{says:?} was expected"), &r)
}

fn npm(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = r#"set -e; npm init -y >/dev/null; npm install --no-audit --no-fund express@4 >npm.log 2>&1 || { cat npm.log; exit 1; }
rm -rf node_modules; npm ci --no-audit --no-fund >npm.log 2>&1 || { cat npm.log; exit 1; }
cat > s.js <<'X'
const s=require('express')().get('/',(q,r)=>r.send('from express')).listen(0,'127.0.0.1',async()=>{console.log(await (await fetch('http://127.0.0.1:'+s.address().port)).text());s.close()})
X
node s.js"#;
    work(stage, fresh, &["--preset", "node"], text, "from express", 240)?;
    if fresh.home.join(".npm").exists() && stage.wall != Wall::Nothing {
        Err("npm's cache was written in the user's own home".into())
    } else {
        Ok(())
    }
}

fn pip(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = r#"set -e; python3 -m venv .venv; .venv/bin/pip install -q flask requests >pip.log 2>&1 || { cat pip.log; exit 1; }
cat > s.py <<'X'
import flask,threading,requests,time
a=flask.Flask("a")
@a.get("/")
def f(): return "from flask"
threading.Thread(target=lambda:a.run(port=8124),daemon=True).start(); time.sleep(1.5)
print(requests.get("http://127.0.0.1:8124/").text)
X
.venv/bin/python s.py 2>server.log"#;
    work(stage, fresh, &["--preset", "python"], text, "from flask", 240)
}

fn cargo(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = r#"set -e; cargo init -q --name t . 2>/dev/null; cargo add -q serde --features derive; cargo add -q serde_json 2>/dev/null
cat > src/main.rs <<'X'
#[derive(serde::Serialize)] struct A { said: &'static str }
fn main() { println!("{}", serde_json::to_string(&A { said: "built" }).unwrap()); }
X
cargo build -q && cargo run -q"#;
    work(stage, fresh, &["--preset", "rust"], text, r#"{"said":"built"}"#, 420)
}

// --- databases and builds --------------------------------------------------------------------------------------------------

fn postgresql(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let bin = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("bin"))
        .find(|b| b.join("initdb").exists());
    let Some(bin) = bin else { return Err("psql is there and initdb is not".into()) };
    let text = format!(
        "set -e; export PATH={}:$PATH; initdb -D pg -A trust >initdb.log 2>&1 || {{ cat initdb.log; exit 1; }}; mkdir -p s; \
         pg_ctl -D pg -w -t 30 -o \"-k $WS/s -c listen_addresses=127.0.0.1 -p 54321\" -l pg.log start >/dev/null || {{ cat pg.log; exit 1; }}; \
         psql -h $WS/s -p 54321 -d postgres -qAt -c 'create table t(x int); insert into t select generate_series(1,1000); select count(*) from t'; \
         psql -h 127.0.0.1 -p 54321 -d postgres -qAt -c 'select sum(x) from t'; pg_ctl -D pg -m fast stop >/dev/null; echo stopped",
        bin.display()
    );
    work(stage, fresh, &[], &text, "1000\n500500\nstopped", 120)
}

fn make_many(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = "set -e; for i in $(seq 40); do echo \"int f$i(void){return $i;}\" > f$i.c; done; (echo '#include <stdio.h>'; for i in $(seq 40); do echo \"int f$i(void);\"; done; echo 'int main(void){int s=0;'; for i in $(seq 40); do echo \"s+=f$i();\"; done; echo 'printf(\"%d\\n\",s);return 0;}') > m.c; \
        printf 'O=$(patsubst %%.c,%%.o,$(wildcard *.c))\\nall: $(O)\\n\\tgcc -o p $(O)\\n' > Makefile; make -s -j8; ./p; gdb -q -batch -ex 'break f7' -ex run -ex bt ./p 2>&1 | grep -c f7";
    work(stage, fresh, &[], text, "820\n", 120)
}

fn tmux(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = "set -e; tmux -f /dev/null -L t new-session -d -x 80 -y 24 'TERM=screen vim -u NONE -i NONE -n note.txt'; sleep 1.5; tmux -L t send-keys 'ityped in vim' Escape ':wq' Enter; sleep 1.5; tmux -L t kill-server 2>/dev/null || true; cat note.txt";
    work(stage, fresh, &[], text, "typed in vim\n", 60)
}

fn sqlite(stage: &Stage, fresh: &Fresh) -> Result<(), String> {
    let text = "set -e; sqlite3 a.db 'pragma journal_mode=wal; create table t(x)' >/dev/null; for i in 1 2 3 4; do (for j in $(seq 25); do sqlite3 -cmd '.timeout 20000' a.db \"insert into t values($i*100+$j)\"; done) & done; wait; sqlite3 a.db 'select count(*), count(distinct x) from t'";
    work(stage, fresh, &[], text, "100|100", 120)
}

/// Starts a server of the pretended outside that ends with the returned value.
pub fn outside(stage: &Stage, fresh: &Fresh, argv: &[String]) -> Result<impl Drop + use<>, String> {
    let mut command: Command = stage.command(Who::Root, Ground::Outside, &fresh.state, &fresh.env(stage), argv);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Killed)
        .map_err(|e| e.to_string())
}
