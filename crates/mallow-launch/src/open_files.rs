//! How many files may be open at once. mallow holds some of each process that it records, and most systems allow 1,024 until a process asks for more. What mallow
//! starts for its user is allowed as many as it would be without mallow: some programs close all numbers up to that limit, and some cannot wait for higher ones.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Mutex, PoisonError};

/// The limit that mallow was started with, if it raised it. Locked while it is in force again.
static INHERITED: Mutex<Option<Rlimit>> = Mutex::new(None);

/// Lets mallow have as many files open as the system allows it.
pub fn raise() {
    let mut inherited = INHERITED.lock().unwrap_or_else(PoisonError::into_inner);
    let now = getrlimit(Resource::Nofile);
    if now.current != now.maximum && setrlimit(Resource::Nofile, all_of(&now)).is_ok() {
        inherited.get_or_insert(now);
    }
}

/// Returns how many files mallow may have open.
pub fn most() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Runs `start` while what it starts may have as many files open as if mallow had not started it.
pub fn as_inherited<T>(start: impl FnOnce() -> T) -> T {
    let inherited = INHERITED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(limit) = inherited.as_ref() else { return start() };
    // Neither can fail: a soft limit may be set to anything up to the hard one.
    let _ = setrlimit(Resource::Nofile, *limit);
    let outcome = start();
    let _ = setrlimit(Resource::Nofile, all_of(limit));
    outcome
}

fn all_of(limit: &Rlimit) -> Rlimit {
    Rlimit { current: limit.maximum, maximum: limit.maximum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// One test: the limit is the process's.
    #[test]
    fn mallow_may_have_more_files_open_than_what_it_starts() {
        let shown = || {
            let output = Command::new("sh").args(["-c", "ulimit -n"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(100), ..before }).unwrap();
        assert_eq!((most(), as_inherited(shown)), (100, "100".to_owned()), "nothing is raised");
        for _ in 0..2 {
            raise();
            assert_eq!(most(), before.maximum.unwrap_or(u64::MAX));
            assert_eq!(as_inherited(shown), "100", "what was there first");
        }
        assert_eq!(most(), before.maximum.unwrap_or(u64::MAX), "raised again behind it");
    }
}
