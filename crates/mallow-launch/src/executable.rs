//! Checks whether `LD_PRELOAD` can work for a program, and refuses it in a sentence otherwise.

use crate::LaunchError;
use mallow_wire::executable::{Obstacle, core_in, is_sanitizer, obstacle};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Finds the program that `command` names and checks that it can be recorded. Gives the static executable that it is, or whose script it is.
pub(crate) fn check(command: &OsStr) -> Result<Option<PathBuf>, LaunchError> {
    let path = find_program(command)?;
    let static_program = check_program(&path, 0)?;
    let preloads = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    match preloads_sanitizer(&preloads) && static_program.is_none() {
        true => Err(LaunchError::CannotPreload { path, reason: SANITIZER_PRELOADED }),
        false => Ok(static_program),
    }
}

/// Returns whether a list of preloaded libraries has the runtime of a sanitizer in it, which ends a program unless it is the first.
fn preloads_sanitizer(list: &OsStr) -> bool {
    list.as_bytes().split(|byte| matches!(byte, b':' | b' ')).any(is_sanitizer)
}

const SANITIZER_PRELOADED: &str = "LD_PRELOAD has the runtime of a sanitizer in it, which replaces the allocator and must be loaded first; record without \
    it";

/// Finds the program that `command` names, whether it can be recorded or not.
///
/// # Errors
/// When there is none that could be run.
pub fn find_program(command: &OsStr) -> Result<PathBuf, LaunchError> {
    find(command).map_err(LaunchError::cannot_run(command))
}

/// As `execvp` does: a name with a slash is a path, else the first executable file of that name on `PATH`.
pub(crate) fn find(command: &OsStr) -> io::Result<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        let metadata = fs::metadata(&path)?;
        return match () {
            () if metadata.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
            () if metadata.permissions().mode() & 0o111 == 0 => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is not executable; chmod +x makes it so",
            )),
            () => Ok(path),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    std::env::split_paths(&path)
        .map(|directory| directory.join(command))
        .find(|path| {
            fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such program on PATH"))
}

fn check_program(path: &Path, depth: u32) -> Result<Option<PathBuf>, LaunchError> {
    /// How many interpreters may stand behind one another; the kernel allows five.
    const DEPTH_MAX: u32 = 5;
    let Ok(start) = first_bytes(path) else { return Ok(None) };
    if let Some(interpreter) = interpreter(&start)
        && depth < DEPTH_MAX
    {
        return check_program(&interpreter, depth + 1);
    }
    let cannot = |reason| Err(LaunchError::CannotPreload { path: path.to_owned(), reason });
    match (privilege(path), in_file(path)) {
        (Some(reason), _) => cannot(reason),
        (None, Some(Obstacle::Static)) => Ok(Some(path.to_owned())),
        (None, Some(obstacle)) => cannot(obstacle_sentence(obstacle)),
        (None, None) => Ok(None),
    }
}

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut start)?;
    Ok(start)
}

/// The program behind `#!`.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let path = line.trim_ascii().split(|byte| *byte == b' ' || *byte == b'\t').next()?;
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// The loader ignores `LD_PRELOAD` in programs that run with other rights than their caller's.
fn privilege(path: &Path) -> Option<&'static str> {
    const SETUID: u32 = 0o4000;
    const SETGID: u32 = 0o2000;
    let file = fs::metadata(path).ok()?;
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    let changes = (file.mode() & SETUID != 0 && file.uid() != user)
        || (file.mode() & SETGID != 0 && file.gid() != group);
    (changes || user != 0 && has_capabilities(path)).then_some(PRIVILEGED)
}

/// Returns whether a file gives capabilities to whoever executes it.
pub fn has_capabilities(path: &Path) -> bool {
    rustix::fs::getxattr(path, "security.capability", &mut [0u8; 64]).is_ok()
}

/// Why a program with other rights than its caller's is not preloaded, and what to do.
pub const PRIVILEGED: &str = "it is setuid, setgid or has file capabilities, so the loader ignores LD_PRELOAD; record a copy \
    without these rights (cp makes one), or start mallow as the user that the program runs as";

/// What the program's file says against it.
fn in_file(path: &Path) -> Option<Obstacle> {
    let file = File::open(path).ok()?;
    obstacle(|offset, into| file.read_at(into, offset).unwrap_or(0))
}

/// Returns whether a file is a static executable.
pub fn is_static(path: &Path) -> bool {
    in_file(path) == Some(Obstacle::Static)
}

/// Returns whether a static executable has this version's recorder linked into it.
pub(crate) fn records_itself(path: &Path) -> bool {
    let core = |file: File| core_in(|offset, into| file.read_at(into, offset).unwrap_or(0));
    File::open(path).ok().and_then(core).is_some_and(|core| core.records())
}

/// Why a program is not preloaded, and what to do.
pub fn obstacle_sentence(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Static => {
            "it is a static program, which loads no libraries; link it dynamically (without -static; for Rust's musl targets with \
             -C target-feature=-crt-static), or use valgrind --tool=dhat, which runs static programs"
        }
        Obstacle::OtherMachine => {
            "it is not a 64-bit x86 program, and this mallow records those only; record a 64-bit build of it"
        }
        Obstacle::Sanitizer => {
            "it is built with a sanitizer whose runtime is a shared library that replaces the allocator and must be loaded first; record a \
             build without -fsanitize=address or -fsanitize=thread"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_followed() {
        assert_eq!(interpreter(b"#!/bin/sh -e\necho"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#! /usr/bin/env python3\n"), Some("/usr/bin/env".into()));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn a_program_with_the_runtime_of_a_sanitizer_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("empty.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let built = |flag: &str| {
            let program = directory.path().join("program");
            let ran =
                std::process::Command::new("cc").arg(flag).arg(&source).arg("-o").arg(&program).status();
            assert!(ran.unwrap().success(), "cc {flag}");
            check(program.as_os_str()).map_err(|error| error.to_string())
        };
        for flag in ["-fsanitize=address", "-fsanitize=thread"] {
            assert!(built(flag).unwrap_err().contains("it is built with a sanitizer"), "{flag}");
        }
        for flag in ["-O1", "-fsanitize=undefined"] {
            assert!(built(flag).is_ok(), "{flag}");
        }
    }

    #[test]
    fn the_runtime_of_a_sanitizer_is_found_among_preloaded_libraries() {
        for (list, found) in [
            ("", false),
            ("/usr/lib/libjemalloc.so.2", false),
            ("libasan.so.8", true),
            ("/lib/libfoo.so:/usr/lib/libtsan.so.2", true),
            ("/lib/libfoo.so /usr/lib/clang/libclang_rt.asan-x86_64.so", true),
            ("/usr/lib/libasan.so/libfoo.so", false),
        ] {
            assert_eq!(preloads_sanitizer(OsStr::new(list)), found, "{list}");
        }
    }

    #[test]
    fn missing_programs_are_named() {
        let error = check(OsStr::new("no-such-program-anywhere")).unwrap_err().to_string();
        assert_eq!(error, "cannot run 'no-such-program-anywhere': no such program on PATH");
        assert!(check(OsStr::new("/")).unwrap_err().to_string().ends_with("it is a directory"));
        assert!(check(OsStr::new("sh")).is_ok());
    }
}
