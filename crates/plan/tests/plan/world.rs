//! A host in memory, and policies over it.

use ringfence_plan::facts::{Availability, CgroupFacts, HostFacts, MountFact, ResolverFiles, Toolchain};
use ringfence_plan::{MemoryView, MountOp, Plan, PlanError, Request, explain};
use ringfence_policy::env_rule::EnvRule;
use ringfence_policy::{
    Base, Fragment, HomeMode, HostPath, HostPattern, HostRule, HostVerb, Layer, Origin, PathPattern, PathRule,
    PathVerb, Policy, PortRule, PortSet, Source, UnixRule, Wide, merge,
};

pub(crate) fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

/// A mount of the host.
pub(crate) fn mount(point: &str, root: &str, device: &str, fs_type: &str) -> MountFact {
    MountFact { point: path(point), root: path(root), device: device.to_owned(), fs_type: fs_type.to_owned() }
}

/// A host, a user, and what is asked.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) base: Base,
    pub(crate) facts: HostFacts,
    pub(crate) request: Request,
    pub(crate) view: MemoryView,
    pub(crate) fragments: Vec<Fragment>,
}

impl World {
    /// An ordinary user `u` with a project in the home folder.
    pub(crate) fn user() -> Self {
        Self::new("/home/u", "/home/u/proj", 1000)
    }

    /// Root, with a project outside of any home.
    pub(crate) fn root() -> Self {
        Self::new("/root", "/srv/proj", 0)
    }

    pub(crate) fn new(home: &str, workspace: &str, uid: u32) -> Self {
        let mut view = MemoryView::new();
        for dir in ["/etc", "/usr/bin", "/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys/firmware", "/opt"] {
            view.dir(dir);
        }
        view.file("/etc/hosts").file("/etc/nsswitch.conf").file("/etc/passwd");
        view.link("/var/run", "/run").link("/bin", "usr/bin").link("/etc/resolv.conf", "../run/resolve/stub.conf");
        view.file("/run/resolve/stub.conf").dir("/sys/kernel/debug").dir(home).dir(workspace);
        let facts = HostFacts {
            kernel: (6, 18),
            landlock_abi: 7,
            userns: Availability::Yes,
            proc_mount: Availability::Yes,
            seccomp: Availability::Yes,
            cgroup: CgroupFacts::None { why: "nothing is delegated".to_owned() },
            uid,
            gid: uid,
            user_name: None,
            home: path(home),
            toolchains: Vec::new(),
            git_dirs: Vec::new(),
            resolver: ResolverFiles {
                resolv_conf: Some(path("/run/resolve/stub.conf")),
                hosts: Some(path("/etc/hosts")),
                nsswitch: Some(path("/etc/nsswitch.conf")),
                nsswitch_text: Some("passwd: files\nhosts: files mdns4 resolve dns\nservices: db files\n".to_owned()),
                hostname: "box".to_owned(),
            },
            unix_sockets: Vec::new(),
            mounts: vec![mount("/", "/", "254:0", "ext4")],
        };
        let data = path(home).join(".local").join("share").join("ringfence");
        let request = Request {
            cwd: path(workspace),
            env: [("PATH", "/usr/bin"), ("HOME", home), ("TERM", "xterm")].map(|(n, v)| (n.into(), v.into())).to_vec(),
            private_home: data.join("homes").join("1a2b"),
            state_dir: data.join("state"),
        };
        let base = Base { home: path(home), workspace: path(workspace), git_dirs: Vec::new(), uid };
        Self { base, facts, request, view, fragments: Vec::new() }
    }

    pub(crate) fn say(&mut self, layer: Layer, f: impl FnOnce(&mut Fragment)) -> &mut Self {
        let mut fragment = Fragment::empty(layer);
        f(&mut fragment);
        self.fragments.push(fragment);
        self
    }

    /// A rule of the user's policy.
    pub(crate) fn rule(&mut self, verb: PathVerb, pattern: &str) -> &mut Self {
        self.rule_of(Layer::User, verb, pattern)
    }

    pub(crate) fn rule_of(&mut self, layer: Layer, verb: PathVerb, pattern: &str) -> &mut Self {
        let rule = rule_in(layer, verb, pattern);
        self.say(layer, |f| f.paths.push(rule))
    }

    pub(crate) fn home(&mut self, mode: HomeMode) -> &mut Self {
        self.say(Layer::User, |f| f.home = Some((mode, user())))
    }

    pub(crate) fn allow_host(&mut self, pattern: &str) -> &mut Self {
        self.say(Layer::User, |f| f.hosts.push(host(pattern)))
    }

    pub(crate) fn publish(&mut self, port: u16) -> &mut Self {
        self.say(Layer::User, |f| f.publish.push(PortRule { port, origin: user() }))
    }

    pub(crate) fn host_port(&mut self, port: u16) -> &mut Self {
        self.say(Layer::User, |f| f.host_ports.push(PortRule { port, origin: user() }))
    }

    pub(crate) fn allow_unix(&mut self, socket: &str) -> &mut Self {
        self.say(Layer::User, |f| f.unix.push(UnixRule { path: path(socket), origin: user() }))
    }

    pub(crate) fn env_deny(&mut self, pattern: &str) -> &mut Self {
        self.say(Layer::User, |f| f.env_deny.push(EnvRule { pattern: pattern.to_owned(), origin: user() }))
    }

    pub(crate) fn env_pass(&mut self, pattern: &str) -> &mut Self {
        self.say(Layer::User, |f| f.env_pass.push(EnvRule { pattern: pattern.to_owned(), origin: user() }))
    }

    pub(crate) fn allow_weaker(&mut self) -> &mut Self {
        self.say(Layer::CommandLine, |f| f.allow_weaker = Some(Origin::flag("--allow-weaker")))
    }

    pub(crate) fn var(&mut self, name: &str, value: &str) -> &mut Self {
        self.request.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn tool(&mut self, tool: &str) -> &mut Self {
        self.facts.toolchains.push(Toolchain { path: path(tool), why: "PATH entry".to_owned() });
        self
    }

    /// A socket that somebody listens on.
    pub(crate) fn listening(&mut self, socket: &str) -> &mut Self {
        self.view.socket(socket);
        self.facts.unix_sockets.push(path(socket));
        self
    }

    pub(crate) fn policy(&self) -> Policy {
        merge(&self.base, self.fragments.clone()).0
    }

    pub(crate) fn try_plan(&self) -> Result<Plan, Vec<PlanError>> {
        ringfence_plan::plan(&self.policy(), &self.facts, &self.request, &self.view)
    }

    #[track_caller]
    pub(crate) fn plan(&self) -> Plan {
        self.try_plan().unwrap_or_else(|errors| panic!("{errors:#?}"))
    }

    #[track_caller]
    pub(crate) fn errors(&self) -> Vec<PlanError> {
        self.try_plan().map(|plan| panic!("{:#?}", plan.mounts)).unwrap_err()
    }

    #[track_caller]
    pub(crate) fn mounts(&self) -> Vec<String> {
        section(&self.plan(), "files")
    }
}

pub(crate) fn rule_in(layer: Layer, verb: PathVerb, pattern: &str) -> PathRule {
    let source = match layer {
        Layer::CommandLine => Source::Flag("--write".to_owned()),
        Layer::Preset => Source::Preset("claude-code".to_owned()),
        _ => Source::File("/etc/ringfence/here.toml".into()),
    };
    let origin = Origin { layer, source, line: None };
    PathRule { pattern: PathPattern::parse(pattern).unwrap(), verb, origin, why: None }
}

pub(crate) fn user() -> Origin {
    Origin { layer: Layer::User, source: Source::File("/etc/ringfence/here.toml".into()), line: Some(7) }
}

pub(crate) fn host(pattern: &str) -> HostRule {
    let (host, ports): (HostPattern, PortSet) = HostPattern::parse(pattern, Wide::Forced).unwrap();
    HostRule { host, ports, verb: HostVerb::Allow, addresses: Vec::new(), origin: user(), why: None }
}

/// A part of the plan, as it is explained.
pub(crate) fn section(plan: &Plan, title: &str) -> Vec<String> {
    explain::sections(plan).into_iter().find(|section| section.title == title).unwrap().lines
}

/// Everything but the system calls, which are the same for everybody.
pub(crate) fn text(plan: &Plan) -> String {
    let mut out = String::new();
    for section in explain::sections(plan).into_iter().filter(|s| s.title != "system calls" && !s.lines.is_empty()) {
        out.push_str(&format!("{}\n", section.title));
        for line in section.lines {
            out.push_str(&format!("  {line}\n"));
        }
    }
    out
}

/// What stands at a path after all operations: a small model of the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    ReadOnly,
    Writable,
    Ours,
    Hidden,
}

/// Plays the operations through and looks at one path.
pub(crate) fn look(plan: &Plan, at: &str) -> Stands {
    let at = path(at);
    let mut now = Stands::Writable;
    for op in &plan.mounts {
        let (target, then) = match op {
            MountOp::FreezeRoot => (HostPath::root(), Stands::ReadOnly),
            MountOp::Tmpfs { target, mode: 0o555, .. } => (target.clone(), Stands::Hidden),
            MountOp::Tmpfs { target, .. } => (target.clone(), Stands::Ours),
            MountOp::Bind { source, target, flags, .. } => {
                let then = match (source == target, flags.read_only) {
                    (false, _) => Stands::Ours,
                    (true, true) => Stands::ReadOnly,
                    (true, false) => Stands::Writable,
                };
                (target.clone(), then)
            }
            MountOp::CoverDir { target, .. } | MountOp::CoverFile { target, .. } => (target.clone(), Stands::Hidden),
            MountOp::Dev { .. } => (path("/dev"), Stands::Ours),
            _ => continue,
        };
        if at.is_within(&target) {
            now = then;
        }
    }
    now
}
