//! mallow as root beside a user who plants links, folders and files: no file of root's is overwritten, followed or
//! run.
//!
//! The other user is nobody. If the tests run without root, the tester is both: the planted files are then the
//! tester's own.

use e2e::gate::{Suite, source};
use e2e::session::json;
use e2e::{Exit, Workshop, run};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn give_to_nobody(path: &Path) {
    if is_root() {
        std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates a folder of nobody's, and a file that nobody may not read.
fn beside(workshop: &Workshop) -> (PathBuf, PathBuf) {
    let (folder, secret) = (workshop.file("theirs"), workshop.file("secret"));
    fs::create_dir(&folder).unwrap();
    set(&folder, 0o777);
    give_to_nobody(&folder);
    fs::write(&secret, "mine").unwrap();
    set(&secret, 0o600);
    (folder, secret)
}

fn is_mine(secret: &Path) -> bool {
    fs::read_to_string(secret).unwrap() == "mine"
}

/// Asserts that this is a trace that only we can read, and not a link.
fn is_ours(trace: &Path) -> bool {
    let found = fs::symlink_metadata(trace).unwrap();
    let me = fs::metadata("/proc/self").unwrap().uid();
    found.is_file()
        && found.mode() & 0o777 == 0o600
        && found.uid() == me
        && fs::read(trace).unwrap().len() > 200
}

#[test]
fn a_recording_in_somebody_elses_folder_overwrites_nothing() {
    let workshop = Workshop::new("planted");
    let (folder, secret) = beside(&workshop);
    // The names that a recording had when they could be guessed.
    let next = std::process::id();
    for pid in next..next + 3000 {
        symlink(&secret, folder.join(format!(".recording-{pid}.mallow"))).unwrap();
    }
    let mut mallow = run::mallow();
    let _ = run::finish(mallow.args(["record", "--", "/bin/ls", "/"]).current_dir(&folder)).well();
    assert!(is_mine(&secret));
    let traces = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let traces: Vec<PathBuf> = traces.filter(|path| !path.is_symlink()).collect();
    assert!(traces.len() == 1 && is_ours(&traces[0]), "{traces:?}");
}

#[test]
fn a_name_that_is_given_is_made_anew_and_for_us_alone() {
    let workshop = Workshop::new("planted-names");
    let (folder, secret) = beside(&workshop);
    let (link, file) = (folder.join("link.mallow"), folder.join("file.mallow"));
    symlink(&secret, &link).unwrap();
    fs::write(&file, "planted").unwrap();
    set(&file, 0o666);
    give_to_nobody(&file);
    let record = |path: &Path, more: &[&str]| {
        let mut mallow = run::mallow();
        mallow.arg("record").args(more).arg("-o").arg(path).args(["--", "/bin/ls", "/"]);
        run::finish(&mut mallow)
    };
    for path in [&link, &file] {
        let refused = record(path, &[]).ended(Exit::Status(125));
        assert!(refused.stderr.contains("exists"), "{refused}");
        let _ = record(path, &["--force"]).well();
        assert!(is_ours(path) && is_mine(&secret), "{path:?}");
    }
    // What is made from it is equally private.
    let svg = folder.join("graph.svg");
    symlink(&secret, &svg).unwrap();
    let mut mallow = run::mallow();
    let _ = run::finish(mallow.arg("flamegraph").arg(&file).args(["--force", "-o"]).arg(&svg)).well();
    assert!(is_ours(&svg) && is_mine(&secret));
}

/// Returns the path from which the library was loaded.
fn library(command: &mut Command) -> String {
    let trace = Workshop::new("loaded");
    command.args(["record", "-o"]).arg(trace.file("t.mallow")).args(["--", "/bin/cat", "/proc/self/maps"]);
    let said = run::finish(command).well().stdout;
    let line = said.lines().find(|line| line.contains("libmallow_preload")).expect("the library is there");
    line[line.find('/').unwrap()..].to_owned()
}

#[test]
fn the_library_is_loaded_from_nowhere_that_others_can_swap() {
    let workshop = Workshop::new("swapped");
    let (theirs, _) = beside(&workshop);
    let within = |path: &str| Path::new(path).starts_with(workshop.path());
    // A folder that every user can write, where any user can rename files.
    let open = library(run::mallow().env("TMPDIR", &theirs));
    assert!(!within(&open), "{open}");
    // Another user has created our folder in it, and owns the home.
    fs::create_dir_all(theirs.join(".cache")).unwrap();
    give_to_nobody(&theirs.join(".cache"));
    let squatted = workshop.file("tmp");
    fs::create_dir(&squatted).unwrap();
    let ours = squatted.join(format!("mallow-{}", fs::metadata("/proc/self").unwrap().uid()));
    fs::write(&ours, "").unwrap();
    let homeless = library(run::mallow().env("TMPDIR", &squatted).env("HOME", &theirs));
    assert!(!within(&homeless), "{homeless}");
    let relative = library(run::mallow().env("TMPDIR", "tmp").current_dir(workshop.path()));
    assert!(!within(&relative), "{relative}");
    // If no other user can write there, it is loaded from there.
    fs::remove_file(&ours).unwrap();
    let private = library(run::mallow().env("TMPDIR", &squatted));
    assert!(within(&private), "{private}");
}

#[test]
fn the_gate_works_in_no_folder_of_somebody_elses() {
    let suite = Suite::new("strangers-home", &source(""));
    let (home, secret) = beside(&suite.workshop);
    let check = || {
        let home = home.to_str().unwrap();
        json(&suite.check_in(&[("HOME", home), ("XDG_CACHE_HOME", "")], &["--json"]).stdout)["tests"][0]["outcome"].clone()
    };
    // What it creates where it may.
    set(&home, 0o755);
    if is_root() {
        chown(&home, Some(0), Some(0)).unwrap();
    }
    let first = check();
    let own = home.join(".cache/mallow/check");
    let root = fs::read_dir(&own).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::metadata(&root).unwrap().mode() & 0o777, 0o700);
    // The same in a home that now belongs to another user: others can write it, and the lock was replaced by a link.
    fs::remove_file(root.join("lock")).unwrap();
    symlink(&secret, root.join("lock")).unwrap();
    fs::remove_dir_all(root.join("bin")).unwrap();
    set(&home, 0o777);
    give_to_nobody(&home);
    assert_eq!(check(), first);
    assert!(is_mine(&secret) && !root.join("bin").exists());
}

/// GitHub's runner executes lines that begin with `::`, with blanks in front or not, and `##[` anywhere.
#[test]
fn no_name_in_a_foreign_profile_is_a_command_to_the_runner() {
    let workshop = Workshop::new("strangers-runner");
    let folded = workshop.file("foreign.folded");
    let function = "::set-output name=pwn::1";
    fs::write(&folded, format!("main;{function} 10\n{function};##[error]b 7\n")).unwrap();
    let after = workshop.file("after.folded");
    fs::write(&after, format!("main;{function} 30\n")).unwrap();
    let pair = [&folded, &after];
    let jobs = [
        ("report", &pair[..1], &["--sort", "allocations"][..]),
        ("report", &pair[..1], &[]),
        ("diff", &pair[..], &[]),
    ];
    for (command, files, more) in jobs {
        let shown = run::finish(run::mallow().arg(command).args(files).args(more)).well().stdout;
        assert!(shown.contains("?:set-output name=pwn"), "{shown}");
        let is_command = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
        assert!(!shown.lines().any(is_command), "{shown}");
    }
}
