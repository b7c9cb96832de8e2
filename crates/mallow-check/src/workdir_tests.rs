//! Working folders, made and found.

use super::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

fn parents(own: &[&Path], temporary: &Path) -> Parents {
    Parents { own: own.iter().map(|path| (*path).to_owned()).collect(), temporary: temporary.to_owned() }
}

fn open(parents: &Parents, suite: &str) -> Result<Workdir, WorkdirError> {
    Workdir::open_in(parents, Path::new(suite), |_| {})
}

#[test]
fn a_suite_has_one_folder_and_other_suites_have_others() {
    let cache = TempDir::new().unwrap();
    let parents = parents(&[cache.path()], cache.path());
    let first = open(&parents, "/srv/demo").unwrap().root().to_owned();
    assert!(first.starts_with(cache.path().join("mallow/check")));
    assert!(first.file_name().unwrap().to_str().unwrap().starts_with("demo-"));
    assert_eq!(open(&parents, "/srv/demo").unwrap().root(), first);
    assert_ne!(open(&parents, "/opt/demo").unwrap().root(), first);
}

#[test]
fn the_shims_are_there_and_a_damaged_one_is_replaced() {
    let cache = TempDir::new().unwrap();
    let parents = parents(&[cache.path()], cache.path());
    let workdir = open(&parents, "/srv/demo").unwrap();
    let header = workdir.include().join("mallow.h");
    let root = workdir.root().to_owned();
    drop(workdir);
    fs::write(&header, "damaged").unwrap();
    let _workdir = open(&parents, "/srv/demo").unwrap();
    for shim in shims::ALL {
        assert_eq!(fs::read_to_string(root.join(shim.path)).unwrap(), shim.text);
    }
    assert!(fs::read_to_string(header).unwrap().contains("mallow_region_begin"));
}

#[test]
fn what_is_in_it_stays() {
    let cache = TempDir::new().unwrap();
    let parents = parents(&[cache.path()], cache.path());
    let trace = open(&parents, "/srv/demo").unwrap().test_folder("test_a").unwrap().join("trace");
    fs::write(&trace, "kept").unwrap();
    let workdir = open(&parents, "/srv/demo").unwrap();
    assert_eq!(fs::read_to_string(workdir.test_folder("test_a").unwrap().join("trace")).unwrap(), "kept");
    assert_eq!(workdir.program("test_a"), workdir.root().join("bin/test_a"));
}

#[test]
fn without_a_home_the_temporary_folder_is_taken_and_is_nobody_elses() {
    let temporary = TempDir::new().unwrap();
    // A home that cannot be written to, even by root: it is a file.
    let file = temporary.path().join("home");
    fs::write(&file, "").unwrap();
    for own in [&[][..], &[&file][..]] {
        let own: Vec<&Path> = own.iter().map(|path| path.as_path()).collect();
        let workdir = open(&parents(&own, temporary.path()), "/srv/demo").unwrap();
        let parent = workdir.root().parent().unwrap();
        assert_eq!(parent.parent().unwrap(), temporary.path());
        assert_eq!(parent.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_temporary_folder_that_others_prepared_is_refused() {
    let temporary = TempDir::new().unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let trap = temporary.path().join(format!("mallow-check-{uid}"));
    let elsewhere = TempDir::new().unwrap();
    let said = || open(&parents(&[], temporary.path()), "/srv/demo").unwrap_err().to_string();
    let expected = |why: &str| {
        format!(
            "there is no place for a working folder: {0}: {0} {why}; set XDG_CACHE_HOME or TMPDIR to a folder that can be written",
            trap.display()
        )
    };
    symlink(elsewhere.path(), &trap).unwrap();
    assert_eq!(said(), expected("belongs to another user, or is no folder"));
    fs::remove_file(&trap).unwrap();
    fs::create_dir(&trap).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(said(), expected("can be written by others"));
}

#[test]
fn a_second_check_says_that_it_waits_and_waits() {
    let cache = TempDir::new().unwrap();
    let first = open(&parents(&[cache.path()], cache.path()), "/srv/demo").unwrap();
    let root = first.root().to_owned();
    drop(first);
    // As another process holds it.
    let held = File::create(root.join("lock")).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let (told, hear) = mpsc::channel();
    let path = cache.path().to_owned();
    let second = thread::spawn(move || {
        let tell = |sentence: &str| told.send(sentence.to_owned()).unwrap();
        Workdir::open_in(&parents(&[&path], &path), Path::new("/srv/demo"), tell).unwrap()
    });
    let sentence = hear.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(sentence, format!("another check works in {}: waiting for it", root.display()));
    assert!(!second.is_finished());
    drop(held);
    assert_eq!(second.join().unwrap().root(), root);
}

#[test]
fn a_check_does_not_wait_for_itself() {
    let cache = TempDir::new().unwrap();
    let parents = parents(&[cache.path()], cache.path());
    let first = open(&parents, "/srv/demo").unwrap();
    let error = open(&parents, "/srv/demo").unwrap_err().to_string();
    assert_eq!(error, "/srv/demo is the folder of this very check: a suite cannot be held against itself");
    drop(first);
    open(&parents, "/srv/demo").unwrap();
}

#[test]
fn a_folder_in_which_nothing_can_be_run_is_not_taken() {
    let flags = StatVfsMountFlags::NOSUID | StatVfsMountFlags::NOEXEC;
    let error = programs_can_be_run(flags).unwrap_err().to_string();
    assert_eq!(error, "programs cannot be run there (noexec)");
    assert!(programs_can_be_run(StatVfsMountFlags::NOSUID).is_ok());
}
