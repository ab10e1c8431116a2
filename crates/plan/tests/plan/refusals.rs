//! Policies that cannot be enforced, each with the error and a control that can.

use crate::world::{Stands, World, look, path, section};
use ringfence_plan::PlanError;
use ringfence_policy::{HomeMode, Layer, PathVerb};

#[test]
fn a_workspace_that_is_everything() {
    for (home, workspace) in [("/home/u", "/"), ("/home/u", "/home/u")] {
        let world = World::new(home, workspace, 1000);
        let errors = world.errors();
        assert_eq!(errors, [PlanError::WorkspaceTooWide { path: path(workspace) }]);
        assert!(errors[0].hint().is_some());
    }
    // By another name.
    let mut world = World::new("/home/u", "/w", 1000);
    world.view.link("/w", "/home/u");
    assert!(world.errors().contains(&PlanError::WorkspaceTooWide { path: path("/home/u") }));
    // Insisted on.
    let mut world = World::new("/home/u", "/home/u", 1000);
    world.rule_of(Layer::CommandLine, PathVerb::AllowWrite, "/home/u");
    assert_eq!(look(&world.plan(), "/home/u/x"), Stands::Writable);
}

#[test]
fn a_workspace_that_does_not_exist() {
    let mut world = World::user();
    world.base.workspace = path("/home/u/gone");
    assert!(matches!(&world.errors()[..], [PlanError::Missing { path: p, .. }] if *p == path("/home/u/gone")));
}

#[test]
fn a_writable_root_that_is_a_link_out_of_its_folder() {
    let mut world = World::user();
    world.view.dir("/home/u/out").link("/home/u/proj/build", "../out").dir("/home/u/proj/in");
    world.rule(PathVerb::AllowWrite, "/home/u/proj/build");
    assert!(matches!(&world.errors()[..], [PlanError::RootIsLink { target, .. }] if *target == path("/home/u/out")));
    // In the middle of the path, inside another writable root.
    let mut world = World::user();
    world.view.dir("/home/u/out/deep").link("/home/u/proj/a", "../out");
    world.rule(PathVerb::AllowWrite, "/home/u/proj/a/deep");
    assert!(matches!(&world.errors()[..], [PlanError::RootIsLink { .. }]));
    // A link that stays in its folder, and a folder that is reached over a link which nobody inside could have made.
    let mut world = World::user();
    world.view.dir("/home/u/proj/in").link("/home/u/proj/build", "in");
    world.view.dir("/data/w").link("/mnt", "/data");
    world.rule(PathVerb::AllowWrite, "/home/u/proj/build").rule(PathVerb::AllowWrite, "/mnt/w");
    let plan = world.plan();
    assert_eq!(look(&plan, "/data/w/x"), Stands::Writable);
    assert_eq!(look(&plan, "/home/u/proj/in/x"), Stands::Writable);
}

#[test]
fn a_writable_root_that_does_not_exist() {
    let mut world = World::user();
    world.rule(PathVerb::AllowWrite, "/srv/gone");
    assert!(matches!(&world.errors()[..], [PlanError::Missing { origin, .. }] if origin.contains("here.toml")));
    // What a preset shares comes to be in the private home; what nobody has to read need not exist.
    let mut world = World::user();
    world.rule_of(Layer::Preset, PathVerb::AllowWrite, "/home/u/.gone").rule(PathVerb::AllowRead, "/srv/gone");
    assert_eq!(look(&world.plan(), "/home/u/.gone"), Stands::Ours);
}

#[test]
fn a_write_denial_of_what_does_not_exist() {
    let mut world = World::user();
    world.rule(PathVerb::DenyWrite, "/home/u/proj/.secrets/deep");
    assert!(matches!(&world.errors()[..], [PlanError::Unenforceable { what, .. }] if what.contains(".secrets/deep")));
    world.allow_weaker();
    assert!(section(&world.plan(), "status").iter().any(|l| l.starts_with("files weaker") && l.contains(".secrets")));
    // Where it could not be made anyhow, there is nothing to hold.
    let mut world = World::user();
    world.rule(PathVerb::DenyWrite, "/opt/gone").rule(PathVerb::DenyWrite, "/home/u/gone");
    world.rule(PathVerb::DenyRead, "/home/u/proj/gone");
    world.plan();
    // A preset's is told, not refused.
    let mut world = World::user();
    world.rule_of(Layer::Preset, PathVerb::DenyWrite, "/home/u/proj/gone");
    assert!(section(&world.plan(), "status").iter().any(|l| l.contains("not there yet: /home/u/proj/gone")));
}

#[test]
fn a_write_denial_of_a_link() {
    let mut world = World::user();
    world.view.dir("/home/u/proj/hooks").link("/home/u/proj/.husky", "hooks");
    world.rule(PathVerb::DenyWrite, "/home/u/proj/.husky");
    assert!(matches!(&world.errors()[..], [PlanError::Unenforceable { what, .. }] if what.contains("is a link")));
    world.allow_weaker();
    assert_eq!(look(&world.plan(), "/home/u/proj/hooks/x"), Stands::ReadOnly);
    // A protected name is told of.
    let mut world = World::user();
    world.view.dir("/home/u/proj/tools").link("/home/u/proj/.vscode", "tools");
    let plan = world.plan();
    assert_eq!(look(&plan, "/home/u/proj/tools/x"), Stands::ReadOnly);
    assert!(section(&plan, "status").iter().any(|l| l.contains("links that can be replaced: /home/u/proj/.vscode")));
}

#[test]
fn folders_between_a_protected_path_and_its_root_keep_their_names() {
    let mut world = World::user();
    world.view.file("/home/u/proj/a/b/c").file("/home/u/proj/sub/.git/config").file("/home/u/proj/pkg/.mcp.json");
    world.rule(PathVerb::DenyWrite, "/home/u/proj/a/b/c");
    let mounts = world.mounts();
    let writable: Vec<_> = mounts
        .iter()
        .filter_map(|line| line.strip_prefix("writable  /home/u/proj").and_then(|rest| rest.split(':').next()))
        .collect();
    assert_eq!(writable, ["", "/a", "/a/b", "/sub/.git"]);
}

#[test]
fn a_denial_whose_link_leads_around_the_workspace() {
    let mut world = World::user();
    world.view.link("/home/u/proj/.env", "..");
    world.rule(PathVerb::DenyRead, "/home/u/proj/**/.env");
    // The home is private: there is nothing of it to hide.
    world.plan();
    world.home(HomeMode::Visible);
    assert!(
        matches!(&world.errors()[..], [PlanError::Unenforceable { what, .. }] if what.contains("holds the workspace"))
    );
}

#[test]
fn a_pattern_that_matches_too_much() {
    let mut world = World::user();
    for n in 0..20_001 {
        world.view.file(&format!("/home/u/proj/d{}/f{n}.x", n / 1000));
    }
    world.rule(PathVerb::DenyRead, "/home/u/proj/**/*.x");
    let errors = world.errors();
    assert!(
        matches!(&errors[..], [PlanError::TooManyMatches { pattern, bound: 20_000, .. }] if pattern.contains("*.x"))
    );
    let mut world = world.clone();
    world.fragments.clear();
    world.rule(PathVerb::DenyRead, "/home/u/proj/**/f1*.x");
    world.plan();
}

#[test]
fn a_socket_that_this_run_needs_and_that_is_not_there() {
    let mut world = World::user();
    world.say(Layer::CommandLine, |f| {
        f.unix.push(ringfence_policy::UnixRule {
            path: path("/run/gone.sock"),
            origin: ringfence_policy::Origin::flag("--unix"),
        });
    });
    assert!(matches!(&world.errors()[..], [PlanError::Missing { origin, .. }] if origin == "--unix"));
}
