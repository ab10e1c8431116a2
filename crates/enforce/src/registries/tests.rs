use super::*;
use ringfence_policy::Layer;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

/// A machine with a home, an `etc`, a folder of programs and a workspace.
struct Machine {
    _dir: tempfile::TempDir,
    base: HostPath,
    vars: Vec<(OsString, OsString)>,
    ask: Ask,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = HostPath::new(fs::canonicalize(dir.path()).unwrap()).unwrap();
        for folder in ["home", "root/etc", "bin", "ws", "state"] {
            fs::create_dir_all(base.as_path().join(folder)).unwrap();
        }
        fs::set_permissions(base.join("state").as_path(), PermissionsExt::from_mode(0o700)).unwrap();
        // The tools that the pretended clients themselves need.
        let path = format!("{base}/bin:/usr/bin:/bin");
        Self { _dir: dir, base, vars: vec![("PATH".into(), path.into())], ask: Ask::Clients }
    }

    fn files(mut self) -> Self {
        self.ask = Ask::Nobody;
        self
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.base.as_path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A pretended client; it counts how often it is started.
    fn client(&self, path: &str, script: &str) {
        let count = self.base.join("count");
        self.put(path, &format!("#!/bin/sh\necho x >> '{count}'\n{script}\n"));
        fs::set_permissions(self.base.as_path().join(path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn started(&self) -> usize {
        fs::read_to_string(self.base.join("count").as_path()).unwrap_or_default().lines().count()
    }

    fn var(&mut self, name: &str, value: &str) {
        self.vars.retain(|(n, _)| n != name);
        self.vars.push((name.into(), value.replace('~', &self.base.join("home").to_string()).into()));
    }

    fn resolve(&self, set: &str) -> Resolved {
        let root = self.base.join("root");
        let context = Context {
            env: &self.vars,
            home: &self.base.join("home"),
            untrusted: &[self.base.join("ws")],
            system: root.as_path(),
            cache: Some(&self.base.join("state").join("registries")),
            ask: self.ask,
        };
        let named_by = Origin { layer: Layer::User, source: Source::File("policy.toml".into()), line: Some(3) };
        resolve(set, &named_by, &context).unwrap()
    }

    /// `host:port` of each rule.
    fn hosts(&self, set: &str) -> Vec<String> {
        shown(&self.resolve(set))
    }
}

fn shown(resolved: &Resolved) -> Vec<String> {
    let text = |rule: &HostRule| {
        let host = match &rule.host {
            HostPattern::Exact(name) => name.as_text().to_owned(),
            HostPattern::Network(net) => net.to_string(),
            other => format!("{other:?}"),
        };
        match &rule.ports {
            PortSet::List(ports) => format!("{host}:{}", ports[0]),
            PortSet::Default => host,
            PortSet::All => format!("{host}:*"),
        }
    };
    let mut hosts: Vec<String> = resolved.hosts.iter().map(text).collect();
    hosts.sort();
    hosts
}

#[test]
fn an_unknown_set_is_an_error() {
    let machine = Machine::new();
    let home = machine.base.join("home");
    let context =
        Context { env: &[], home: &home, untrusted: &[], system: Path::new("/"), cache: None, ask: Ask::Nobody };
    let error = resolve("@nuget", &Origin::flag("--allow-host"), &context).unwrap_err();
    assert!(error.to_string().contains("@maven"), "{error}");
}

#[test]
fn npm_files_variables_and_scopes() {
    let mut machine = Machine::new().files();
    machine.put(
        "home/.npmrc",
        "registry=https://user.test/npm/\n@acme:registry=https://npm.acme.test:8443/\n//user.test/:_authToken=secret",
    );
    machine.put("root/etc/npmrc", "registry=https://global.test/\n@corp:registry=https://corp.test/");
    machine.put("ws/.npmrc", "registry=https://evil.test/");
    let resolved = machine.resolve("@npm");
    assert_eq!(shown(&resolved), ["corp.test:443", "npm.acme.test:8443", "user.test:443"]);
    assert_eq!(resolved.env, [("npm_config_registry".to_owned(), "https://user.test/npm/".to_owned())]);
    let rule = &resolved.hosts[0];
    assert_eq!(rule.origin.layer, Layer::User);
    assert!(rule.why.as_ref().unwrap().starts_with("@npm: npm:"), "{:?}", rule.why);
    assert!(!format!("{resolved:?}").contains("secret"));

    machine.var("NPM_CONFIG_REGISTRY", "http://env.test:4873");
    assert_eq!(machine.hosts("@npm"), ["corp.test:443", "env.test:4873", "npm.acme.test:8443"]);
    machine.var("npm_config_userconfig", "~/other");
    machine.put("home/other", "@a:registry=https://${WHO}.test/");
    assert_eq!(machine.hosts("@npm"), ["corp.test:443", "env.test:4873"]);
    machine.var("WHO", "a");
    assert_eq!(machine.hosts("@npm"), ["a.test:443", "corp.test:443", "env.test:4873"]);
}

#[test]
fn npm_itself_is_asked_once() {
    let machine = Machine::new();
    machine.client("bin/npm", "[ \"$*\" = 'config get registry' ] && [ \"$PWD\" = / ] && echo https://builtin.test/");
    let resolved = machine.resolve("@npm");
    assert!(shown(&resolved).contains(&"builtin.test:443".to_owned()), "{resolved:?}");
    // The network's resolver may lead the client's own registry to a mirror, but never to this host or its services.
    let rule = resolved.hosts.iter().find(|r| format!("{:?}", r.host).contains("builtin")).unwrap();
    let may = |address: &str| rule.addresses.iter().any(|n| n.contains(&address.parse::<std::net::IpAddr>().unwrap()));
    assert!(may("10.1.2.3") && may("203.0.113.80") && may("fd00::1"));
    for never in ["127.0.0.1", "169.254.169.254", "100.100.100.200", "::1", "fe80::1", "0.0.0.0"] {
        assert!(!may(never), "{never}");
    }
    assert_eq!(machine.started(), 1);
    assert_eq!(machine.resolve("@npm"), resolved);
    assert_eq!(machine.started(), 1, "the second answer comes from the cache");
    // The file that now exists did not exist before.
    machine.put("home/.npmrc", "registry=https://new.test/");
    assert!(machine.hosts("@npm").contains(&"new.test:443".to_owned()));
    // Another client is another answer.
    fs::remove_file(machine.base.as_path().join("home/.npmrc")).unwrap();
    machine.client("bin/npm", "echo https://changed-answer.test/");
    assert!(machine.hosts("@npm").contains(&"changed-answer.test:443".to_owned()));
}

#[test]
fn a_client_in_the_workspace_is_never_started() {
    let mut machine = Machine::new();
    machine.client("ws/node_modules/.bin/npm", "echo https://evil.test/");
    machine.client("bin/npm", "command -v helper; echo https://good.test/");
    machine.client("ws/node_modules/.bin/helper", "true");
    symlink(machine.base.as_path().join("ws/node_modules/.bin"), machine.base.as_path().join("way")).unwrap();
    fs::create_dir(machine.base.as_path().join("open")).unwrap();
    fs::set_permissions(machine.base.as_path().join("open"), PermissionsExt::from_mode(0o777)).unwrap();
    machine.client("open/npm", "echo https://anybody.test/");
    let base = machine.base.to_string();
    machine.var(
        "PATH",
        &format!("{base}/ws/node_modules/.bin:node_modules/.bin:{base}/way:{base}/open:{base}/bin:/usr/bin:/bin"),
    );
    let hosts = machine.hosts("@npm");
    assert_eq!(machine.started(), 1);
    assert!(hosts.contains(&"good.test:443".to_owned()), "{hosts:?}");
    // A link from a trusted folder into the workspace is no way in either.
    let other = Machine::new();
    other.client("ws/npm", "echo https://evil.test/");
    symlink(other.base.as_path().join("ws/npm"), other.base.as_path().join("bin/npm")).unwrap();
    assert!(!other.hosts("@npm").contains(&"evil.test:443".to_owned()));
    assert_eq!(other.started(), 0);
}

#[test]
fn clients_get_a_clean_environment() {
    let mut machine = Machine::new();
    machine.client(
        "bin/npm",
        "echo \"https://${NODE_OPTIONS:-none}.${npm_config_cafile:-none}.${CARGO_HOME:-none}.test/\"",
    );
    machine.var("NODE_OPTIONS", "evil");
    machine.var("npm_config_cafile", "ca");
    let workspace = machine.base.join("ws").to_string();
    machine.var("CARGO_HOME", &workspace);
    assert!(machine.hosts("@npm").contains(&"none.ca.none.test:443".to_owned()), "{:?}", machine.hosts("@npm"));
}

#[test]
fn silence_and_noise_are_findings() {
    let machine = Machine::new();
    machine.client("bin/npm", "exit 3");
    let resolved = machine.resolve("@npm");
    assert!(resolved.findings.iter().any(|f| f.contains("it failed")), "{:?}", resolved.findings);
    assert_eq!(machine.started(), 1);
    machine.resolve("@npm");
    assert_eq!(machine.started(), 2, "no answer is not kept");
    machine.client("bin/npm", "cat /dev/zero");
    assert!(machine.resolve("@npm").findings.iter().any(|f| f.contains("no end")));
}

#[test]
fn nothing_installed_is_said_so() {
    let mut machine = Machine::new();
    machine.var("PATH", "/nonexistent");
    for set in SETS {
        let resolved = machine.resolve(set);
        assert!(resolved.hosts.is_empty(), "{set}: {:?}", resolved.hosts);
        assert!(resolved.findings.iter().any(|f| f.contains(set)), "{set}");
    }
}

#[test]
fn registries_on_this_machine_become_ports() {
    let machine = Machine::new().files();
    machine.put(
        "home/.npmrc",
        "registry=http://localhost:4873/\n@a:registry=http://127.0.0.2:4874/\n@b:registry=http://10.1.2.3:80/",
    );
    let resolved = machine.resolve("@npm");
    assert_eq!(resolved.host_ports, [4873, 4874]);
    assert_eq!(shown(&resolved), ["10.1.2.3/32"]);
    assert!(
        resolved.hosts[0]
            .addresses
            .iter()
            .all(|net| !net.contains(&"169.254.169.254".parse::<std::net::IpAddr>().unwrap()))
    );
}

#[test]
fn pip_files_and_the_python_that_knows_the_rest() {
    let mut machine = Machine::new();
    machine.client("bin/python3", "[ \"$1\" = -I ] && printf 'https://index.test/simple\\nhttps://files.test\\n'");
    assert_eq!(machine.hosts("@pypi"), ["files.test:443", "index.test:443"]);
    machine.put("root/etc/pip.conf", "[global]\nindex-url = https://u:p@mirror.test/simple\nextra-index-url =\n  https://extra.test/simple\n  http://plain.test\ncert = /x\n");
    let resolved = machine.resolve("@pypi");
    assert_eq!(shown(&resolved), ["extra.test:443", "mirror.test:443", "plain.test"]);
    assert!(resolved.env.is_empty(), "a URL with a password goes nowhere: {:?}", resolved.env);
    machine.put("home/.config/pip/pip.conf", "[global]\nindex-url = https://user.test/simple\n");
    let resolved = machine.resolve("@pypi");
    assert_eq!(shown(&resolved), ["extra.test:443", "plain.test", "user.test:443"]);
    assert_eq!(resolved.env[0].1, "https://user.test/simple");
    // The built-in index by name brings its file host.
    machine.var("PIP_INDEX_URL", "https://index.test/simple/");
    assert!(machine.hosts("@pypi").contains(&"files.test:443".to_owned()));
    machine.var("UV_DEFAULT_INDEX", "corp=https://uv.test/simple");
    machine.put(
        "home/.config/uv/uv.toml",
        "extra-index-url = [\"https://uvx.test\"]\n[[index]]\nname = \"a\"\nurl = \"https://uvi.test\"\n",
    );
    let hosts = machine.hosts("@pypi");
    assert!(
        ["uv.test:443", "uvx.test:443", "uvi.test:443"].iter().all(|h| hosts.contains(&(*h).to_owned())),
        "{hosts:?}"
    );
}

#[test]
fn cargo_names_its_index_and_keeps_the_download_host_beside_it() {
    let machine = Machine::new();
    let says = "echo 'error: failed to get `libc`\nCaused by:\n  failed to download from `https://index.test/config.json`' >&2; exit 101";
    machine.client("bin/cargo", says);
    machine.put(
        "home/.cargo/registry/index/index.test-0123456789abcdef/config.json",
        r#"{"dl":"https://static.test/{crate}","api":"https://api.test"}"#,
    );
    machine.put("home/.cargo/registry/index/evil.test-0123456789abcdef/config.json", r#"{"dl":"https://evil.test"}"#);
    assert_eq!(machine.hosts("@crates"), ["index.test:443", "static.test:443"]);
    assert!(!machine.base.as_path().join("state/registries").read_dir().unwrap().flatten().any(|e| e.path().is_dir()));

    machine.put("home/.cargo/config.toml", "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nreplace-with = \"b\"\n[source.b]\nregistry = \"sparse+https://mirror.test/index/\"\n[registries.own]\nindex = \"sparse+https://own.test/\"\n");
    machine.put(
        "home/.cargo/registry/index/mirror.test-0123456789abcdef/config.json",
        r#"{"dl":"https://mirror.test/dl"}"#,
    );
    let resolved = machine.resolve("@crates");
    assert_eq!(shown(&resolved), ["mirror.test:443", "own.test:443"]);
    assert!(resolved.findings.iter().any(|f| f.contains("registry own")), "{:?}", resolved.findings);
    machine.put(
        "home/.cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"v\"\n[source.v]\ndirectory = \"vendor\"\n",
    );
    assert!(machine.hosts("@crates").is_empty());
}

#[test]
fn cargo_is_let_fetch_the_download_host_once() {
    let machine = Machine::new();
    machine.client(
        "bin/cargo",
        "if [ -n \"$CARGO_HTTP_PROXY\" ]; then echo '`https://index.test/config.json`' >&2; exit 101; fi\n\
         mkdir -p \"$CARGO_HOME/registry/index/x\"; grep -q index.test \"$CARGO_HOME/config.toml\" && \
         echo '{\"dl\":\"https://fetched.test\"}' > \"$CARGO_HOME/registry/index/x/config.json\"",
    );
    assert_eq!(machine.hosts("@crates"), ["fetched.test:443", "index.test:443"]);
    machine.hosts("@crates");
    assert_eq!(machine.started(), 2);
    assert!(!machine.base.as_path().join("home/.cargo").exists(), "nothing is left in the user's home");
}

#[test]
fn apt_sources_of_both_styles_and_proxies() {
    let machine = Machine::new();
    machine.put("root/etc/apt/sources.list", "# deb http://old.test/ x\ndeb [arch=amd64 signed-by=/x y=z] http://one.test/debian stable main # c\ndeb cdrom:[D]/ x main\ndeb-src https://src.test/ s m\n");
    machine.put("root/etc/apt/sources.list.d/a.sources", "Types: deb\nURIs: http://two.test/debian\n https://three.test/debian\nSuites: x\n# Enabled: no\n\nEnabled: no\nURIs: https://off.test/\n");
    machine.put("root/etc/apt/sources.list.d/b.list.disabled", "deb http://disabled.test/ x\n");
    machine.put("root/etc/apt/sources.list.d/c.list", "deb mirror+http://list.test/m x\n");
    machine.put(
        "root/etc/apt/apt.conf.d/01p",
        "// Acquire::http::Proxy \"http://comment.test\";\nAcquire::http::Proxy \"http://proxy.test:3142\";\n",
    );
    assert_eq!(
        machine.hosts("@debian"),
        ["list.test", "one.test", "proxy.test:3142", "src.test:443", "three.test:443", "two.test"]
    );
}

#[test]
fn go_variables_files_and_the_command() {
    let mut machine = Machine::new();
    machine.client("bin/go", "[ \"$GOTOOLCHAIN\" = local ] && printf 'https://proxy.test,direct\\nsum.test\\n'");
    assert_eq!(machine.hosts("@go"), ["proxy.test:443", "sum.test:443"]);
    machine.put("home/.config/go/env", "GOPROXY=https://corp.test/go|file:///srv\n");
    assert_eq!(machine.hosts("@go"), ["corp.test:443", "sum.test:443"]);
    machine.var("GOSUMDB", "off");
    machine.var("GOPROXY", "direct");
    let resolved = machine.resolve("@go");
    assert!(resolved.hosts.is_empty() && resolved.findings.iter().any(|f| f.contains("directly")), "{resolved:?}");
    machine.var("GOSUMDB", "sum.corp.test+abc https://sums.test");
    assert_eq!(machine.hosts("@go"), ["sums.test:443"]);
}

#[test]
fn maven_mirrors_profiles_and_the_central_repository() {
    let mut machine = Machine::new();
    machine.client("inst/bin/mvn", "true");
    symlink("../inst/bin/mvn", machine.base.as_path().join("bin/mvn")).unwrap();
    machine.put("inst/lib/maven-model-builder-3.x.jar", "not really a zip");
    machine.client("bin/unzip", "[ \"$1\" = -p ] && echo '<project><repositories><repository><id>central</id><url>https://central.test/m2</url></repository></repositories></project>'");
    assert_eq!(machine.hosts("@maven"), ["central.test:443"]);
    machine.put(
        "home/.m2/settings.xml",
        "<settings><mirrors><mirror><mirrorOf>other</mirrorOf><url>https://${env.WHO}.test/</url></mirror>\
         <mirror><mirrorOf>x</mirrorOf><blocked>true</blocked><url>http://0.0.0.0/</url></mirror></mirrors>\
         <profiles><profile><id>on</id><repositories><repository><url>https://repo.test/</url></repository></repositories></profile>\
         <profile><id>off</id><repositories><repository><url>https://unused.test/</url></repository></repositories></profile></profiles>\
         <activeProfiles><activeProfile>on</activeProfile></activeProfiles></settings>",
    );
    machine.var("WHO", "who");
    assert_eq!(machine.hosts("@maven"), ["central.test:443", "repo.test:443", "who.test:443"]);
    machine.put("home/.m2/settings.xml", "<settings><mirrors><mirror><mirrorOf>*,!internal</mirrorOf><url>http://all.test:8081/</url></mirror></mirrors></settings>");
    assert_eq!(machine.hosts("@maven"), ["all.test:8081"]);
}

#[test]
fn a_damaged_or_foreign_cache_is_not_believed() {
    let machine = Machine::new().files();
    machine.put("home/.npmrc", "registry=https://good.test/");
    assert_eq!(machine.hosts("@npm"), ["good.test:443"]);
    let folder = machine.base.as_path().join("state/registries");
    let file = folder.read_dir().unwrap().flatten().next().unwrap().path();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&file, "{").unwrap();
    assert_eq!(machine.hosts("@npm"), ["good.test:443"]);
    // The whole entry of another environment does not fit this one.
    let kept = fs::read_to_string(&file).unwrap();
    let mut other = Machine::new().files();
    other.var("NPM_CONFIG_REGISTRY", "https://other.test/");
    other.hosts("@npm");
    let theirs = other.base.as_path().join("state/registries").read_dir().unwrap().flatten().next().unwrap().path();
    fs::write(&theirs, kept).unwrap();
    assert_eq!(other.hosts("@npm"), ["other.test:443"]);
}

#[test]
fn a_cached_answer_is_quick() {
    let machine = Machine::new();
    machine.client("bin/npm", "sleep 0.3; echo https://slow.test/");
    machine.hosts("@npm");
    let start = std::time::Instant::now();
    machine.hosts("@npm");
    let time = start.elapsed();
    println!("cached: {time:?}");
    assert!(time < Duration::from_millis(20), "{time:?}");
}
