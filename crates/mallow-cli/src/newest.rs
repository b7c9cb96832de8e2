//! The newest profiles of the current folder, for commands without a file argument.
//!
//! Their names are always printed, so that no profile is mistaken for another.

use crate::args::LowCommand;
use crate::output;
use mallow_query::Failure;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

/// The endings of the names that mallow chooses: of heap profiles, and of CPU profiles.
const ENDINGS: [&str; 2] = [".mallow", ".cpu.pb.gz"];

/// Adds the files to a command that has none, and prints their names.
pub(crate) fn name_files(command: &mut LowCommand) -> Result<(), Failure> {
    let file = match command {
        LowCommand::Report(low) if !low.list_default_suppressions => &mut low.file,
        LowCommand::Flamegraph(low) => &mut low.file,
        LowCommand::Export(low) => &mut low.file,
        #[cfg(feature = "open")]
        LowCommand::Open(low) => &mut low.file,
        LowCommand::Diff(low) if low.before.is_none() => {
            let [before, after] = newest_two(Path::new("."))?;
            output::note(&[about_two(&before, &after)]);
            (low.before, low.after) = (Some(before), Some(after));
            return Ok(());
        }
        _ => return Ok(()),
    };
    if file.is_none() {
        let newest = profiles(Path::new("."))?.into_iter().next().ok_or_else(none)?;
        output::note(&[format!("this is {}, the newest profile in this folder.", newest.display())]);
        *file = Some(newest);
    }
    Ok(())
}

fn about_two(before: &Path, after: &Path) -> String {
    let which = match [program(before), program(after)] {
        [Some(before), Some(after)] if before == after => format!("profiles of {after} in this folder"),
        [Some(_), Some(_)] => "profiles in this folder; they are of different programs".to_owned(),
        _ => "profiles in this folder".to_owned(),
    };
    format!("this is {} against {}, the two newest {which}.", before.display(), after.display())
}

/// Returns the newest profile, preceded by the next older one of its program, if mallow chose the names, or else of its kind.
fn newest_two(folder: &Path) -> Result<[PathBuf; 2], Failure> {
    let mut profiles = profiles(folder)?.into_iter();
    let after = profiles.next().ok_or_else(none)?;
    let older: Vec<PathBuf> = profiles.filter(|path| ending(path) == ending(&after)).collect();
    let of_program = older.iter().find(|path| program(path).is_some() && program(path) == program(&after));
    let before = of_program.or(older.first()).cloned().ok_or_else(|| {
        Failure::new(format!(
            "the newest profile in this folder is {}, and there is no other of its kind to compare it with; name the files.",
            after.display()
        ))
    })?;
    Ok([before, after])
}

fn none() -> Failure {
    let [heap, cpu] = ENDINGS;
    Failure::new(format!(
        "there is no profile in this folder, neither *{heap} nor *{cpu}; name a file, or make one with mallow record."
    ))
}

/// Returns the names of all profiles in a folder, the newest first; of the same age, the later name first.
fn profiles(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unread = |error: io::Error| {
        Failure::new(format!("cannot look for a profile in this folder: {}.", mallow_query::reason(&error)))
    };
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = PathBuf::from(entry.file_name());
        // A link to a profile counts. A file that has disappeared, or that must not be read, does not.
        let Some(metadata) = ending(&name).and_then(|_| fs::metadata(entry.path()).ok()) else { continue };
        if let (true, Ok(changed)) = (metadata.is_file(), metadata.modified()) {
            found.push((changed, name));
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

/// Returns the ending of a profile's name. A file whose name begins with a dot is incomplete, or was hidden by a user.
fn ending(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy();
    ENDINGS.into_iter().find(|ending| name.ends_with(ending) && !name.starts_with('.'))
}

/// Returns the program in a name that mallow chose, such as `app` in `app.4242.mallow`.
fn program(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let (program, pid) = name.strip_suffix(ending(path)?)?.rsplit_once('.')?;
    pid.bytes().all(|byte| byte.is_ascii_digit()).then(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Creates files with these names, the oldest first.
    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (at, name) in names.iter().enumerate() {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64)).unwrap();
        }
        folder
    }

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_newest_is_the_one_that_was_changed_last() {
        let folder = folder(&[
            "z.1.mallow",
            "a.2.mallow",
            "b.3.cpu.pb.gz",
            "notes.txt",
            ".sampling-9.cpu.pb.gz",
            "x.pb.gz",
        ]);
        fs::create_dir(folder.path().join("c.mallow")).unwrap();
        std::os::unix::fs::symlink("gone", folder.path().join("d.mallow")).unwrap();
        assert_eq!(profiles(folder.path()).unwrap(), paths(&["b.3.cpu.pb.gz", "a.2.mallow", "z.1.mallow"]));
    }

    #[test]
    fn of_equally_old_ones_the_later_name_is_the_newest() {
        let folder = folder(&["b.mallow", "c.mallow", "a.mallow"]);
        for name in ["a.mallow", "b.mallow", "c.mallow"] {
            let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        assert_eq!(profiles(folder.path()).unwrap(), paths(&["c.mallow", "b.mallow", "a.mallow"]));
    }

    #[test]
    fn two_of_one_program_are_compared_if_there_are_two() {
        let names = ["git.2.mallow", "a.mallow", "ls.1.cpu.pb.gz", "ls.3.mallow", "git.4.mallow"];
        let [before, after] = newest_two(folder(&names).path()).unwrap();
        assert_eq!([&before, &after], [Path::new("git.2.mallow"), Path::new("git.4.mallow")]);
        let told =
            "this is git.2.mallow against git.4.mallow, the two newest profiles of git in this folder.";
        assert_eq!(about_two(&before, &after), told);
        let [before, after] = newest_two(folder(&names[..4]).path()).unwrap();
        assert_eq!([&before, &after], [Path::new("a.mallow"), Path::new("ls.3.mallow")]);
        let told = "this is a.mallow against ls.3.mallow, the two newest profiles in this folder.";
        assert_eq!(about_two(&before, &after), told);
        let told = about_two(Path::new("git.2.mallow"), &after);
        assert!(
            told.ends_with("the two newest profiles in this folder; they are of different programs."),
            "{told}"
        );
    }

    #[test]
    fn two_of_one_kind_are_compared() {
        let both = folder(&["a.mallow", "b.mallow", "c.cpu.pb.gz", "d.mallow"]);
        assert_eq!(newest_two(both.path()).unwrap().to_vec(), paths(&["b.mallow", "d.mallow"]));
        for (names, part) in [
            (&[][..], "there is no profile in this folder, neither *.mallow nor *.cpu.pb.gz; name a file"),
            (
                &["a.mallow"],
                "the newest profile in this folder is a.mallow, and there is no other of its kind",
            ),
            (&["a.mallow", "b.cpu.pb.gz"], "is b.cpu.pb.gz, and there is no other of its kind"),
        ] {
            let told = newest_two(folder(names).path()).unwrap_err();
            assert!(told.sentence().contains(part), "{told:?}");
        }
    }
}
