//! Manual pages and completions, from the definitions that parse the command line.

use crate::args::Cli;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io;
use std::path::Path;

/// The shells for which completions are committed.
const SHELLS: [Shell; 4] = [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::Zsh];

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Writes `ringfence.1` and one page per verb into `dir`, which must exist.
///
/// # Errors
/// A file cannot be written.
pub fn generate_man(dir: &Path) -> io::Result<()> {
    // Without the date and the source line, which would make the pages differ from day to day.
    clap_mangen::generate_to(command(), dir)
}

/// Writes one completion script per shell into `dir`, which must exist.
///
/// # Errors
/// A file cannot be written.
pub fn generate_completions(dir: &Path) -> io::Result<()> {
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command(), "ringfence", dir)?;
    }
    Ok(())
}

/// The manual page of the program or of one verb; `None` when there is no such verb.
pub(crate) fn man_page(verb: Option<&str>) -> Option<clap_mangen::Man> {
    let mut root = command();
    // Fills in the names and usage lines of the verbs.
    root.build();
    match verb {
        None => Some(clap_mangen::Man::new(root)),
        Some(name) => {
            let verb = root.find_subcommand(name)?.clone();
            let title = format!("ringfence-{name}");
            Some(clap_mangen::Man::new(verb.display_name(title.clone())).title(title))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_has_a_page_and_every_shell_a_script() {
        let dir = tempfile::tempdir().unwrap();
        generate_man(dir.path()).unwrap();
        generate_completions(dir.path()).unwrap();
        for verb in command().get_subcommands() {
            let page = dir.path().join(format!("ringfence-{}.1", verb.get_name()));
            assert!(page.is_file(), "{}", page.display());
            assert!(man_page(Some(verb.get_name())).is_some());
        }
        for script in ["ringfence.bash", "_ringfence", "ringfence.fish", "ringfence.elv"] {
            assert!(dir.path().join(script).is_file(), "{script}");
        }
        assert!(man_page(Some("nothing")).is_none());
    }

    #[test]
    fn generation_is_deterministic() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for dir in [&one, &two] {
            generate_man(dir.path()).unwrap();
            generate_completions(dir.path()).unwrap();
        }
        for entry in std::fs::read_dir(one.path()).unwrap() {
            let entry = entry.unwrap();
            let other = std::fs::read(two.path().join(entry.file_name())).unwrap();
            assert_eq!(std::fs::read(entry.path()).unwrap(), other, "{:?}", entry.file_name());
        }
    }
}
