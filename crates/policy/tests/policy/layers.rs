//! Who may widen what.

use crate::*;
use limits::Limit;
use std::time::Duration;

fn project(trusted: bool) -> Fragment {
    let mut project =
        fragment(Layer::Project, &["+w /data", "-r /home/u/w/.env"], &["+ evil.test", "- telemetry.test"]);
    let at = origin(Layer::Project, 3);
    project.trusted = trusted;
    project.home = Some((HomeMode::Visible, at.clone()));
    project.presets = vec![("claude-code".into(), at.clone())];
    project.unprotect = vec![(".vscode".into(), at.clone())];
    project.unix = vec![UnixRule { path: path("/run/docker.sock"), origin: at.clone() }];
    project.env_pass = vec![EnvRule { pattern: "GITHUB_TOKEN".into(), origin: at.clone() }];
    project.env_deny = vec![EnvRule { pattern: "MINE".into(), origin: at.clone() }];
    project.publish = vec![PortRule { port: 3000, origin: at.clone() }];
    project.allow_weaker = Some(at.clone());
    project.skip_proof = Some(at.clone());
    project.limits.memory = Some(Limit { value: 1 << 30, origin: at.clone() });
    project.limits.wall = Some(Limit { value: Duration::from_secs(9000), origin: at.clone() });
    project.ceiling = Some(ceiling(at));
    project
}

fn ceiling(origin: Origin) -> Ceiling {
    Ceiling {
        write: None,
        hosts: None,
        home: None,
        allow_weaker: true,
        ports: true,
        unix: true,
        limits: Limits::default(),
        origin,
    }
}

fn user() -> Fragment {
    let mut user = Fragment::empty(Layer::User);
    user.limits.memory = Some(Limit { value: 2 << 30, origin: origin(Layer::User, 1) });
    user.limits.wall = Some(Limit { value: Duration::from_secs(60), origin: origin(Layer::User, 1) });
    user
}

fn verdict(policy: &Policy, text: &str, access: Access) -> Verdict {
    policy.may_path(&path(text), access).verdict
}

#[test]
fn an_untrusted_project_only_narrows() {
    let (policy, findings) = merge(&base(), vec![user(), project(false)]);
    assert_eq!(verdict(&policy, "/data/x", Access::Write), Verdict::Denied);
    assert_eq!(verdict(&policy, "/home/u/w/.env", Access::Read), Verdict::Denied);
    assert!(policy.network_is_off());
    assert_eq!(policy.network.rules.len(), 1);
    assert_eq!(policy.files.home.mode, HomeMode::Private);
    assert!(
        policy.presets.is_empty()
            && policy.unix.is_empty()
            && policy.network.publish.is_empty()
            && policy.ceilings.is_empty()
    );
    assert_eq!((policy.walls.allow_weaker.clone(), policy.walls.skip_proof.clone()), (None, None));
    assert_eq!(policy.env.may_pass("GITHUB_TOKEN".as_ref()).verdict, Verdict::Denied);
    assert_eq!(policy.env.may_pass("MINE".as_ref()).verdict, Verdict::Denied);
    assert_eq!(policy.limits.memory.as_ref().unwrap().value, 1 << 30);
    assert_eq!(policy.limits.wall.as_ref().unwrap().value, Duration::from_secs(60));
    assert!(policy.files.protected.iter().any(|name| name.pattern == ".vscode"));
    let dropped: Vec<_> = findings.iter().filter(|f| f.code == "RF0301").collect();
    for what in [
        "path `/data`",
        "host `evil.test`",
        "preset `claude-code`",
        "socket",
        "variable `GITHUB_TOKEN`",
        "published port 3000",
        "allow_weaker",
        "skipping the proof",
        "home",
        "limit wall",
    ] {
        assert!(dropped.iter().any(|f| f.message.starts_with(what)), "{what}: {dropped:#?}");
    }
    assert!(dropped.iter().all(|f| f.hint.as_deref() == Some("ringfence trust")));
    assert!(findings.iter().any(|f| f.code == "RF0302") && findings.iter().any(|f| f.code == "RF0303"));
    assert!(project(false).granted_presets().is_empty() && project(true).granted_presets().len() == 1);
}

#[test]
fn a_trusted_project_grants_but_some_words_are_not_its_own() {
    let (policy, findings) = merge(&base(), vec![user(), project(true)]);
    assert_eq!(verdict(&policy, "/data/x", Access::Write), Verdict::Allowed);
    assert_eq!(policy.may_connect(&to("evil.test")).verdict, Verdict::Allowed);
    assert_eq!(policy.may_connect(&to("telemetry.test")).code, "denied_by_rule");
    assert_eq!(policy.files.home.mode, HomeMode::Visible);
    assert_eq!(policy.presets.len(), 1);
    // The user's word on one value is stronger.
    assert_eq!(policy.limits.memory.as_ref().unwrap().value, 2 << 30);
    assert!(policy.ceilings.is_empty());
    assert!(policy.files.protected.iter().any(|name| name.pattern == ".vscode"));
    assert!(findings.iter().all(|f| f.code != "RF0301"), "{findings:#?}");
}

#[test]
fn an_untrusted_project_may_choose_a_stricter_home() {
    let mut project = Fragment::empty(Layer::Project);
    project.trusted = false;
    project.home = Some((HomeMode::Empty, origin(Layer::Project, 1)));
    let mut flag = Fragment::empty(Layer::CommandLine);
    flag.home = Some((HomeMode::Visible, origin(Layer::CommandLine, 1)));
    let (policy, findings) = merge(&base(), vec![project, flag]);
    assert_eq!(policy.files.home.mode, HomeMode::Empty);
    assert!(findings.is_empty());
}

#[test]
fn a_managed_denial_yields_only_to_a_managed_grant() {
    let managed = fragment(Layer::Managed, &["-r /data", "+r /data/open", "-w /home/u/w/locked"], &["- evil.test"]);
    let flag = fragment(
        Layer::CommandLine,
        &["+w /data/secret/x", "+w /data/open/x", "+w /home/u/w/locked/a/b"],
        &["+ evil.test", "+ a.test"],
    );
    let (policy, _) = merge(&base(), vec![managed, flag]);
    for (text, access, expected) in [
        ("/data/secret/x", Access::Read, Verdict::Denied),
        ("/data/secret/x", Access::Write, Verdict::Denied),
        ("/data/open/y", Access::Read, Verdict::Allowed),
        ("/home/u/w/locked/a/b", Access::Write, Verdict::Denied),
        ("/home/u/w/locked/a/b", Access::Read, Verdict::Allowed),
        ("/home/u/w/other", Access::Write, Verdict::Allowed),
    ] {
        assert_eq!(verdict(&policy, text, access), expected, "{text}");
    }
    assert_eq!(policy.may_connect(&to("evil.test")).code, "denied_by_rule");
    assert_eq!(policy.may_path(&path("/data/secret/x"), Access::Read).flag, None);
}

#[test]
fn ceilings_bound_everybody() {
    let mut managed = Fragment::empty(Layer::Managed);
    let at = origin(Layer::Managed, 1);
    let mut bound = ceiling(at.clone());
    bound.write = Some(vec![path_rule(Layer::Managed, "+w /home/*/w"), path_rule(Layer::Managed, "-w /home/*/w/ci")]);
    bound.hosts = Some(vec![
        host_rule(Layer::Managed, "+ *.good.test"),
        host_rule(Layer::Managed, "- bad.good.test"),
        host_rule(Layer::Managed, "+ 10.1.0.0/16:*"),
    ]);
    bound.home = Some(HomeMode::Private);
    (bound.allow_weaker, bound.ports, bound.unix) = (false, false, false);
    bound.limits.pids = Some(Limit { value: 100, origin: at.clone() });
    bound.limits.disk = Some(Limit { value: 100, origin: at });
    managed.ceiling = Some(bound);
    let flag_at = origin(Layer::CommandLine, 1);
    let mut flag = fragment(
        Layer::CommandLine,
        &["+w /data", "+w /home/u/w/ci"],
        &["+ evil.test", "+ api.good.test", "+ bad.good.test", "+ *", "+ 10.0.0.0/8:*"],
    );
    flag.home = Some((HomeMode::Visible, flag_at.clone()));
    flag.allow_weaker = Some(flag_at.clone());
    flag.publish = vec![PortRule { port: 1, origin: flag_at.clone() }];
    flag.unix = vec![UnixRule { path: path("/run/x"), origin: flag_at.clone() }];
    flag.limits.pids = Some(Limit { value: 1000, origin: flag_at });
    let (policy, findings) = merge(&base(), vec![flag, managed]);
    for (text, expected) in
        [("/data/x", Verdict::Denied), ("/home/u/w/x", Verdict::Allowed), ("/home/u/w/ci/x", Verdict::Denied)]
    {
        let decision = policy.may_path(&path(text), Access::Write);
        assert_eq!(decision.verdict, expected, "{text}");
        assert_eq!((decision.remedy, decision.flag), (None, None), "{text}");
    }
    for (text, code) in [
        ("api.good.test", "allowed"),
        ("evil.test", "ceiling"),
        ("bad.good.test", "ceiling"),
        ("10.1.2.3", "allowed"),
        ("10.2.2.3", "ceiling"),
    ] {
        let decision = policy.may_connect(&to(text));
        assert_eq!((decision.code, decision.remedy), (code, None), "{text}");
    }
    let at = |address: &str| policy.may_address(&to("api.good.test"), address.parse().unwrap(), &[]).code;
    assert_eq!((at("10.1.2.3"), at("10.2.2.3"), at("1.1.1.1")), ("named_by_rule", "ceiling", "public"));
    assert_eq!(policy.files.home.mode, HomeMode::Private);
    assert_eq!(policy.limits.pids.as_ref().unwrap().value, 100);
    assert_eq!(policy.limits.disk.as_ref().unwrap().value, 100);
    assert!(policy.walls.allow_weaker.is_none() && policy.unix.is_empty() && policy.network.publish.is_empty());
    for code in ["RF0305", "RF0306", "RF0307", "RF0308", "RF0309"] {
        assert!(findings.iter().any(|f| f.code == code), "{code}");
    }
}

#[test]
fn a_ceiling_without_hosts_is_no_network() {
    let mut managed = fragment(Layer::Managed, &[], &["+ a.test"]);
    let mut bound = ceiling(origin(Layer::Managed, 1));
    bound.hosts = Some(vec![]);
    managed.ceiling = Some(bound);
    let (policy, _) = merge(&base(), vec![managed]);
    assert!(policy.network_is_off());
    let decision = policy.may_connect(&to("a.test"));
    assert_eq!((decision.code, decision.remedy), ("no_network", None));
}

#[test]
fn policy_files_are_write_protected_and_said() {
    let project = fragment(Layer::Project, &["-r /home/u/w/.env"], &[]);
    let mut extra = fragment(Layer::CommandLine, &["+w /data"], &[]);
    extra.paths[0].origin.source = Source::File("/data/policy.toml".into());
    let (policy, _) = merge(&base(), vec![project, extra]);
    for file in ["/home/u/w/ringfence.toml", "/data/policy.toml"] {
        assert_eq!(verdict(&policy, file, Access::Write), Verdict::Denied, "{file}");
        assert_eq!(verdict(&policy, file, Access::Read), Verdict::Allowed, "{file}");
    }
    let said: Vec<_> = lint(&policy).into_iter().filter(|f| f.code == "RF0327").collect();
    assert_eq!(said.len(), 2, "{said:#?}");
}

#[test]
fn names_are_unprotected_by_the_user_alone() {
    let at = origin(Layer::User, 1);
    let mut user = Fragment::empty(Layer::User);
    user.unprotect = vec![(".vscode/".into(), at.clone()), (".claude".into(), at.clone()), (".nothing".into(), at)];
    let (policy, findings) = merge(&base(), vec![user]);
    assert_eq!(verdict(&policy, "/home/u/w/.vscode/tasks.json", Access::Write), Verdict::Allowed);
    assert_eq!(verdict(&policy, "/home/u/w/.claude/settings.json", Access::Write), Verdict::Allowed);
    assert_eq!(verdict(&policy, "/home/u/w/.mcp.json", Access::Write), Verdict::Denied);
    let codes: Vec<_> = findings.iter().map(|f| f.code).collect();
    assert_eq!(codes, ["RF0304", "RF0312", "RF0312"]);
}

#[test]
fn one_value_of_a_variable() {
    let set = |layer, value: &str| {
        let mut fragment = Fragment::empty(layer);
        fragment.env_set = vec![env_rule::EnvSet { name: "A".into(), value: value.into(), origin: origin(layer, 1) }];
        fragment
    };
    let (policy, findings) =
        merge(&base(), vec![set(Layer::Preset, "preset"), set(Layer::User, "b"), set(Layer::User, "a")]);
    assert_eq!(policy.env.set.len(), 1);
    assert_eq!(policy.env.set[0].value, "a");
    assert_eq!(findings.iter().map(|f| f.code).collect::<Vec<_>>(), ["RF0311"]);
}

#[test]
fn a_home_that_is_the_root_cannot_be_private() {
    let at = Base { home: path("/"), workspace: path("/w"), git_dirs: vec![], uid: 0 };
    let (policy, findings) = merge(&at, vec![]);
    assert_eq!(policy.files.home.mode, HomeMode::Visible);
    assert!(findings.iter().any(|f| f.code == "RF0310"));
    assert_eq!(verdict(&policy, "/.ssh/id", Access::Read), Verdict::Denied);
    assert_eq!(verdict(&policy, "/w/x", Access::Write), Verdict::Allowed);
}
