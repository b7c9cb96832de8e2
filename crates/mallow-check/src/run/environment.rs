//! What is to be seen of the program that ran.

use crate::build::Prepared;
use crate::environment::{self, ObservedProgram};
use crate::manifest::TestSpec;
use mallow_collect::WatchedProcess;
use mallow_gate::measurement::Environment;
use object::{Object, ObjectSection};
use std::path::Path;

/// The environment of a test's program.
pub(super) fn of(test: &TestSpec, prepared: &Prepared, processes: &[WatchedProcess]) -> Environment {
    let modules: Vec<String> =
        processes.iter().flat_map(|process| &process.modules).map(|module| module.path.clone()).collect();
    let command = Path::new(&prepared.command[0]);
    let executable = command.canonicalize().unwrap_or_else(|_| command.to_owned());
    let executable = executable.to_string_lossy();
    watched_environment(&modules, &executable, prepared.runtime.as_deref(), test.settings.cpus)
}

/// The environment of a program with these libraries.
pub(crate) fn watched_environment(
    modules: &[String],
    executable: &str,
    runtime: Option<&str>,
    cpus: Option<u32>,
) -> Environment {
    let libc = modules.iter().find(|path| is_libc(path)).cloned().or_else(|| libc_of(executable));
    let content = libc.and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    environment::of(&ObservedProgram {
        architecture: std::env::consts::ARCH,
        executable,
        modules,
        libc: &content,
        runtime,
        processors: cpus.unwrap_or(u32::MAX).min(processors()),
    })
}

fn is_libc(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl")
}

/// The libc of a program whose stacks never led into its own: what it requests as its loader, which is musl itself, or the one beside glibc's.
fn libc_of(executable: &str) -> Option<String> {
    let loader = loader(executable).filter(|path| path.starts_with('/'))?;
    if is_libc(&loader) {
        return Some(loader);
    }
    let loader = Path::new(&loader).canonicalize().ok()?;
    let libc = loader.with_file_name("libc.so.6");
    libc.exists().then(|| libc.to_string_lossy().into_owned())
}

/// Returns the loader that a program requests.
fn loader(executable: &str) -> Option<String> {
    let bytes = std::fs::read(executable).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let path = file.section_by_name(".interp")?.data().ok()?.to_vec();
    Some(String::from_utf8_lossy(&path).trim_end_matches('\0').to_owned())
}

fn processors() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}
