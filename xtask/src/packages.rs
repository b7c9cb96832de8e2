//! What the tests need from Debian's packages: the one list, and how it is installed.
//!
//! Nothing is installed when everything is there. A package that cannot be had is a failure: no test may pass
//! because the program it should have watched was not found.

use crate::run;
use crate::wasm;
use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};

/// How one sees that a need is met.
enum Proof {
    /// A program on PATH, wherever it came from.
    Command(&'static str),
    /// A file that has to be the distribution's own: a version manager's shell shim of the same name would be
    /// recorded instead of the interpreter.
    File(&'static str),
    /// The package itself: libraries, headers and debug files.
    Installed,
}

struct Need {
    /// Names of the package, newest releases last; one of them is enough.
    names: &'static [&'static str],
    proof: Proof,
}

const fn command(names: &'static [&'static str], program: &'static str) -> Need {
    Need { names, proof: Proof::Command(program) }
}

const fn file(names: &'static [&'static str], path: &'static str) -> Need {
    Need { names, proof: Proof::File(path) }
}

const fn installed(names: &'static [&'static str]) -> Need {
    Need { names, proof: Proof::Installed }
}

/// Everything the tests and the benchmarks run or link against.
const NEEDS: &[Need] = &[
    // Compilers and the tools that take binaries apart.
    command(&["hyperfine"], "hyperfine"),
    command(&["gcc"], "gcc"),
    command(&["g++"], "g++"),
    // Programs of 32 bits, which cannot be recorded.
    installed(&["gcc-multilib"]),
    command(&["binutils"], "readelf"),
    command(&["elfutils"], "eu-strip"),
    command(&["dwz"], "dwz"),
    // A server of debug files, and its client.
    command(&["debuginfod"], "debuginfod"),
    installed(&["libc6-dbg"]),
    // Tells which files a report opens.
    command(&["strace"], "strace"),
    // `script`, which gives a command a terminal.
    command(&["bsdutils"], "script"),
    // Peers that our metrics are compared with.
    command(&["valgrind"], "valgrind"),
    command(&["heaptrack"], "heaptrack"),
    command(&["linux-perf"], "perf"),
    // Benchmarks with it report what mallow counts.
    installed(&["libbenchmark-dev"]),
    // Readers that judge our exports.
    // Reads Ruby's heap dumps.
    command(&["ruby-heapy"], "heapy"),
    // With jeprof, and to link against.
    installed(&["libjemalloc-dev"]),
    // And a server to soak is written in it.
    command(&["golang-go"], "go"),
    // Fetches those that are in no distribution: `oracles.rs`.
    command(&["npm"], "npm"),
    installed(&["python3-pip"]),
    // Real programs to record.
    command(&["sqlite3"], "sqlite3"),
    installed(&["libsqlite3-0"]),
    file(&["ruby"], "/usr/bin/ruby"),
    // A large gem, whose lines are judged.
    installed(&["ruby-activesupport"]),
    // A C extension is built against it.
    installed(&["ruby-dev"]),
    file(&["python3"], "/usr/bin/python3"),
    command(&["nodejs"], "node"),
    command(&["redis-server"], "redis-server"),
    command(&["redis-tools"], "redis-benchmark"),
    // With `jcmd`.
    command(&["openjdk-17-jdk-headless"], "javac"),
    // A server under load, and the load generators that ours is compared with.
    // Not on the PATH of an ordinary user.
    file(&["nginx-light"], "/usr/sbin/nginx"),
    command(&["hey"], "hey"),
    command(&["wrk"], "wrk"),
    // Makes certificates for servers with TLS.
    command(&["openssl"], "openssl"),
    // What the scripts of `integrations/ci` call.
    command(&["curl"], "curl"),
    command(&["jq"], "jq"),
    // Test runners that call the gate: `programs/gate/examples`.
    installed(&["python3-pytest"]),
    command(&["cmake"], "cmake"),
    // A second libc for the gate.
    command(&["musl-tools"], "musl-gcc"),
    // Other allocators, preloaded and linked.
    installed(&["libjemalloc2"]),
    installed(&["libtcmalloc-minimal4", "libtcmalloc-minimal4t64"]),
    installed(&["libgoogle-perftools-dev"]),
    command(&["google-perftools"], "google-pprof"),
    installed(&["libmimalloc2.0", "libmimalloc3"]),
    installed(&["libmimalloc-dev"]),
];

/// Rust's target whose programs are static: those with `mallow-alloc` in them, and mallow as it is handed out.
pub(crate) const STATIC_TARGET: &str = "x86_64-unknown-linux-musl";

/// What only the long suite runs.
const NEEDS_OF_LONG: &[Need] =
    &[command(&["chromium"], "chromium"), command(&["firefox-esr", "firefox"], "firefox-esr")];

/// What makes packages of mallow and tries them in roots of other releases.
const NEEDS_OF_DIST: &[Need] = &[
    installed(&["python3-wheel"]),
    command(&["npm"], "npm"),
    command(&["musl-tools"], "musl-gcc"),
    // Not on the PATH of an ordinary user.
    file(&["debootstrap"], "/usr/sbin/debootstrap"),
    command(&["buildah"], "buildah"),
];

/// What fits interpreters of other releases to their libraries.
const NEEDS_OF_INTERPRETERS: &[Need] = &[command(&["patchelf"], "patchelf")];

/// The release whose versions of the packages the expected metrics and texts were made with. Mallow itself asks for none of them.
const WRITTEN_AGAINST: &str = "Debian GNU/Linux 12 (bookworm)";

/// What somebody on another release should know before a test fails; none on the one that the tests were written against.
fn note_of_release(os_release: &str) -> Option<String> {
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map_or("a system without a name", |name| name.trim_matches('"'));
    (name != WRITTEN_AGAINST).then(|| {
        format!(
            "this is {name}; the tests were written against the versions of {WRITTEN_AGAINST}. Where a compiler, an interpreter or \
             another tool of a later version does otherwise, a test that watches it may fail."
        )
    })
}

/// Makes sure that every need is met, installing what is missing.
pub(crate) fn ensure() -> Result<(), String> {
    ensure_all(NEEDS)?;
    wasm::have_target(STATIC_TARGET)
}

/// The same for what only the long suite needs.
pub(crate) fn ensure_large() -> Result<(), String> {
    ensure_all(NEEDS_OF_LONG)
}

/// The same for what `cargo xtask dist` needs.
pub(crate) fn ensure_for_dist() -> Result<(), String> {
    ensure_all(NEEDS_OF_DIST)
}

/// The same for what `cargo xtask interpreters` needs.
pub(crate) fn ensure_for_interpreters() -> Result<(), String> {
    ensure_all(NEEDS_OF_INTERPRETERS)
}

fn ensure_all(needs: &'static [Need]) -> Result<(), String> {
    if let Some(note) = note_of_release(&std::fs::read_to_string("/etc/os-release").unwrap_or_default()) {
        println!("    {note}");
    }
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_met(need)).collect();
    if missing.is_empty() {
        println!("    all {} packages that the tests need are there", needs.len());
        return Ok(());
    }
    println!("    missing: {}", first_names(&missing));
    if find_on_path("apt-get").is_none() {
        return Err(format!(
            "the tests need {}, and this system has no apt-get; install them with its own package manager.",
            first_names(&missing)
        ));
    }
    run::shown(&mut privileged(&["update", "-q"])?)?;
    let names: Vec<&str> = missing.iter().map(|need| available_name(need)).collect();
    let mut install = privileged(&["install", "-y", "-q", "--no-install-recommends"])?;
    run::shown(install.args(&names))?;
    let still: Vec<&Need> = missing.into_iter().filter(|need| !is_met(need)).collect();
    if still.is_empty() {
        return Ok(());
    }
    Err(format!("apt-get ended well, but the tests still miss {}.", first_names(&still)))
}

fn is_met(need: &Need) -> bool {
    match need.proof {
        Proof::Command(program) => find_on_path(program).is_some(),
        Proof::File(path) => Path::new(path).is_file(),
        Proof::Installed => need.names.iter().any(|name| is_installed(name)),
    }
}

fn is_installed(name: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}\\n", name]);
    run::captured(&mut query).is_ok_and(|status| status.lines().any(|line| line == "installed"))
}

/// The name under which this release has the package; the first one when it has none, so that apt says so. A question takes a third of a second.
fn available_name(need: &Need) -> &'static str {
    if let [only] = need.names {
        return only;
    }
    let is_known = |name: &&&str| {
        let mut policy = Command::new("apt-cache");
        policy.args(["policy", name]);
        run::captured(&mut policy).is_ok_and(|text| has_candidate(&text))
    };
    need.names.iter().find(is_known).copied().unwrap_or(need.names[0])
}

fn has_candidate(policy: &str) -> bool {
    policy
        .lines()
        .any(|line| line.trim().strip_prefix("Candidate: ").is_some_and(|version| version != "(none)"))
}

fn first_names(needs: &[&Need]) -> String {
    needs.iter().map(|need| need.names[0]).collect::<Vec<_>>().join(" ")
}

fn find_on_path(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// `apt-get` as root: directly, or through sudo, which may ask for a password only where somebody can type one.
fn privileged(arguments: &[&str]) -> Result<Command, String> {
    let is_root = run::captured(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = if is_root {
        Command::new("apt-get")
    } else if find_on_path("sudo").is_some() {
        let mut sudo = Command::new("sudo");
        if !std::io::stdin().is_terminal() {
            sudo.arg("-n");
        }
        sudo.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        sudo
    } else {
        return Err("packages are missing, and installing them needs root or sudo; neither is here. \
                    Run `cargo xtask packages` once as root."
            .to_owned());
    };
    command.args(arguments).args(["-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"]);
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_release_is_named() {
        let of = |name: &str| note_of_release(&format!("ID=debian\nPRETTY_NAME=\"{name}\"\n"));
        assert_eq!(of(WRITTEN_AGAINST), None);
        assert!(
            of("Debian GNU/Linux 13 (trixie)").unwrap().starts_with("this is Debian GNU/Linux 13 (trixie); ")
        );
        assert!(note_of_release("").unwrap().contains("without a name"));
    }

    #[test]
    fn what_is_absent_is_seen_as_absent() {
        assert!(!is_met(&installed(&["mallow-has-no-such-package"])));
        assert!(!is_met(&command(&["x"], "mallow-has-no-such-command")));
        assert!(!is_met(&file(&["x"], "/usr/bin/mallow-has-no-such-file")));
    }

    #[test]
    fn what_is_present_is_seen_as_present() {
        assert!(is_met(&installed(&["libc6"])));
        assert!(is_met(&installed(&["mallow-has-no-such-package", "libc6"])));
        assert!(is_met(&command(&["x"], "sh")));
        assert!(is_met(&file(&["x"], "/bin/sh")));
    }

    #[test]
    fn a_package_that_this_release_lacks_has_no_candidate() {
        assert!(has_candidate("gcc:\n  Installed: (none)\n  Candidate: 4:12.2.0-3\n"));
        assert!(!has_candidate("gone:\n  Installed: (none)\n  Candidate: (none)\n"));
        assert!(!has_candidate(""));
    }

    #[test]
    fn no_package_is_listed_twice() {
        let mut names: Vec<&str> = NEEDS.iter().flat_map(|need| need.names).copied().collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
