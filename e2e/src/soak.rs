//! The servers of `programs/soak`: how they are built and started, and what `mallow soak` may say of them.

use crate::run::{self, Exit, Finished};
use crate::session::json;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Below the folder of the servers that are built: see [`certify`].
pub const CERTIFICATE: &str = "certificate";

/// Where the servers' sources are.
#[must_use]
pub fn sources() -> PathBuf {
    crate::repository().join("programs/soak")
}

/// How many requests each phase under load sent, and how many of them succeeded.
///
/// # Panics
/// When the document is no soak's.
#[must_use]
pub fn loads(report: &Value) -> Vec<(u64, u64)> {
    let samples = report["samples"].as_array().expect("samples").iter();
    let count = |load: &Value, name: &str| load[name].as_u64().expect("a count");
    let loads = samples.map(|sample| &sample["load"]).filter(|load| load.is_object());
    loads
        .map(|load| (count(load, "requests"), count(load, "succeeded")))
        .filter(|counts| counts.0 > 0)
        .collect()
}

/// A server that does one thing, and what may be said of it: an entry of `expected.toml`.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Which server.
    pub server: String,
    /// Which of its modes.
    pub name: String,
    /// Its command, as on `mallow soak`'s command line, where `{port}` stands for the port to listen at.
    pub command: Vec<String>,
    /// Packages of PyPI that it needs: see [`install`].
    pub packages: Vec<String>,
    /// What is asked for.
    pub path: String,
    /// Whether it speaks TLS: see [`certify`].
    pub tls: bool,
    /// Of `mallow soak`, beside what is asked for and how often.
    pub options: Vec<String>,
    /// How often in each iteration.
    pub requests: u64,
    /// The verdicts that are right.
    pub verdicts: Vec<String>,
    /// What has to be found beside the verdict.
    pub findings: Vec<String>,
    /// Of a leak: the lowest and the highest metric in bytes per request that is right.
    pub per_request: Option<(f64, f64)>,
    /// Of a leak: the end of the file's path, and the line that has to be named.
    pub line: Option<(String, u64)>,
}

/// What one run said.
#[derive(Clone, Debug)]
pub struct Said {
    /// The verdict, as in JSON; empty when there was no document.
    pub verdict: String,
    /// What is not as it should be; an inconclusive verdict is no fault.
    pub faults: Vec<String>,
    /// Growth of the judged series in bytes per request.
    pub per_request: f64,
    /// Seconds that the soak took.
    pub seconds: f64,
}

/// Builds the servers that are compiled, below `target`, and reads what is expected of all.
///
/// # Panics
/// When a compiler refuses them, or `expected.toml` is not what it should be.
#[must_use]
pub fn modes(target: &Path) -> Vec<Mode> {
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.args(["build", "--release", "--locked", "--target-dir"]).arg(target);
    // Linted in the same build: `cargo xtask ci` leaves this workspace out where it lints the others.
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    let _ = run::finish(cargo.current_dir(sources().join("rust"))).well();
    let c = target.join("c");
    fs::create_dir_all(&c).expect("the target folder takes a folder");
    build_c(&c);
    build_go(target);
    let java = target.join("java");
    fs::create_dir_all(&java).expect("the target folder takes a folder");
    let mut javac = run::command("javac");
    // The class that it takes memory from malloc by is none of the public ones.
    javac.args(["-nowarn", "-XDignore.symbol.file", "-d"]).arg(&java).arg(sources().join("java/Server.java"));
    let _ = run::finish(&mut javac).well();
    expected(target)
}

/// On the C library's malloc, on an allocator of its own without a name, and on one that goes by malloc's.
fn build_c(folder: &Path) {
    let pool = sources().join("c/pool.h").to_string_lossy().into_owned();
    let own = ["-include", &pool, "-DPOOL_IS_MALLOC", "-DPOOL_HELD_AT_START=16", "-fno-builtin"];
    for (name, more) in [("server", &[][..]), ("server-pool", &own[..2]), ("server-malloc", &own[..])] {
        let mut gcc = run::command("gcc");
        // Another test may be running the one that is there.
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        gcc.args(["-g", "-O1", "-Wall", "-Wextra"]).args(more);
        gcc.arg("-o").arg(&fresh).arg(sources().join("c/server.c"));
        let _ = run::finish(&mut gcc).well();
        fs::rename(fresh, folder.join(name)).expect("a built server can be put in its place");
    }
}

/// As one gets it without asking, and static.
fn build_go(target: &Path) {
    let go = target.join("go");
    fs::create_dir_all(&go).expect("the target folder takes a folder");
    for (name, cgo) in [("server", "1"), ("server-static", "0")] {
        let fresh = go.join(format!("{name}.{}", std::process::id()));
        let mut build = run::command("go");
        build.args(["build", "-o"]).arg(&fresh).arg(sources().join("go/server.go"));
        build.env("CGO_ENABLED", cgo).env("GOFLAGS", "-buildvcs=false");
        // Go itself may be installed from elsewhere than Debian. It keeps what it has built of its library, for other clones too.
        for name in ["PATH", "HOME", "XDG_CACHE_HOME", "GOCACHE", "GOPATH"] {
            if let Some(value) = std::env::var_os(name) {
                build.env(name, value);
            }
        }
        let _ = run::finish(&mut build).well();
        fs::rename(fresh, go.join(name)).expect("a built server can be put in its place");
    }
}

/// Installs the packages that servers need, into the folder that their commands name.
///
/// # Panics
/// When they cannot be fetched.
pub fn install(target: &Path, packages: &BTreeSet<&String>) {
    if packages.is_empty() {
        return;
    }
    let venv = target.join("venv");
    let _ = run::finish(run::command("/usr/bin/python3").args(["-m", "venv"]).arg(&venv)).well();
    let mut pip = run::command(venv.join("bin/pip"));
    let _ = run::finish(pip.args(["install", "--quiet"]).args(packages)).well();
}

/// Writes a certificate for `localhost` that signs itself: `cert.pem`, its `key.pem`, and both as `both.pem`.
///
/// # Panics
/// When openssl does not make it.
pub fn certify(folder: &Path) {
    fs::create_dir_all(folder).expect("the folder of a certificate can be made");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let mut openssl = run::command("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    let _ = run::finish(openssl.arg("-keyout").arg(&key).arg("-out").arg(&cert)).well();
    let both = [cert, key].map(|file| fs::read(file).expect("openssl wrote it")).concat();
    fs::write(folder.join("both.pem"), both).expect("the folder takes both");
}

/// A server and mode of all; the compiled ones are built once, below the tests' own folder.
///
/// # Panics
/// As [`modes`], and when there is no such mode.
#[must_use]
pub fn mode(target: &Path, server: &str, name: &str) -> &'static Mode {
    static MODES: OnceLock<Vec<Mode>> = OnceLock::new();
    let all = MODES.get_or_init(|| modes(&target.join("soak-servers")));
    all.iter().find(|mode| mode.server == server && mode.name == name).expect("expected.toml has it")
}

/// What is expected of all, where the compiled ones lie below `target`.
///
/// # Panics
/// When `expected.toml` is not what it should be.
#[must_use]
pub fn expected(target: &Path) -> Vec<Mode> {
    let text = fs::read_to_string(sources().join("expected.toml")).expect("expected.toml can be read");
    let document: Value = toml::from_str(&text).expect("expected.toml is TOML");
    let servers = document["server"].as_array().expect("a list of servers");
    let modes = servers.iter().flat_map(|server| {
        let modes = server["modes"].as_object().expect("a table of modes");
        modes.iter().map(|(name, mode)| Mode::read(server, name, mode, target))
    });
    modes.collect()
}

impl Mode {
    fn read(server: &Value, name: &str, mode: &Value, target: &Path) -> Mode {
        let filled = |word: &Value| {
            let word = word.as_str().expect("a word");
            word.replace("{mode}", name)
                .replace("{rust}", &target.join("release").to_string_lossy())
                .replace("{c}", &target.join("c").to_string_lossy())
                .replace("{go}", &target.join("go").to_string_lossy())
                .replace("{venv}", &target.join("venv").to_string_lossy())
                .replace("{java}", &target.join("java").to_string_lossy())
                .replace("{certificate}", &target.join(CERTIFICATE).to_string_lossy())
                .replace("{soak}", &sources().to_string_lossy())
        };
        let words =
            |list: &Value| -> Vec<String> { list.as_array().into_iter().flatten().map(filled).collect() };
        let range = mode["per_request"].as_array();
        Mode {
            server: server["name"].as_str().expect("a server has a name").to_owned(),
            name: name.to_owned(),
            command: words(&server["command"]),
            packages: words(&server["packages"]),
            path: server["path"].as_str().unwrap_or("/").to_owned(),
            tls: server["tls"].as_bool().unwrap_or_default(),
            options: words(&server["options"]),
            requests: server["requests"].as_u64().unwrap_or(1000),
            verdicts: words(&mode["verdicts"]),
            findings: words(&mode["findings"]),
            per_request: range.map(|range| (range[0].as_f64().unwrap(), range[1].as_f64().unwrap())),
            line: mode["source"].as_str().map(|source| {
                (source.to_owned(), line_of(source, mode["marker"].as_str().expect("a marker")))
            }),
        }
    }

    /// `mallow soak` of this server, with more arguments.
    #[must_use]
    pub fn soak(&self, more: &[&str]) -> Finished {
        let port = free_port();
        let mut mallow = run::mallow();
        let origin = if self.tls { "https://localhost" } else { "http://127.0.0.1" };
        mallow.args(["soak", "--json", "--url"]).arg(format!("{origin}:{port}{}", self.path));
        let command = self.command.iter().map(|word| word.replace("{port}", &port.to_string()));
        mallow.args(&self.options).args(more).arg("--").args(command).env("PORT", port.to_string());
        run::finish(&mut mallow)
    }

    /// The soak that `expected.toml` holds for.
    #[must_use]
    pub fn soak_short(&self) -> Finished {
        self.soak(&["--iterations", "20", "--requests", &self.requests.to_string()])
    }

    /// Holds what a soak printed against what is expected.
    #[must_use]
    pub fn judge(&self, finished: &Finished) -> Said {
        let mut faults = Vec::new();
        if finished.stdout.is_empty() {
            faults.push(format!("no document\n{finished}"));
            return Said { verdict: String::new(), faults, per_request: 0.0, seconds: 0.0 };
        }
        let report = json(&finished.stdout);
        // As people see it, for that is what `expected.toml` has.
        let verdict = report["verdict"].as_str().unwrap_or_default().to_ascii_uppercase().replace('_', "-");
        // What is not known lies in no range.
        let per_request = report["growth"]["bytes_per_request"]["value"].as_f64().unwrap_or(f64::NAN);
        if verdict != "INCONCLUSIVE" {
            if !self.verdicts.contains(&verdict) {
                faults.push(format!("{verdict}, not {}", self.verdicts.join(" or ")));
            }
            if let Some((low, high)) = self.per_request
                && !(low..=high).contains(&per_request)
            {
                faults.push(format!("{per_request:.1} B/request, not {low} to {high}"));
            }
            faults.extend(self.line.as_ref().and_then(|line| other_line(&report, line)));
            faults.extend(self.findings.iter().filter_map(|kind| missing(&report, kind)));
            if finished.exit != Exit::Status(i32::from(self.exit_code(&verdict))) {
                faults.push(format!("{verdict} ended with {:?}", finished.exit));
            }
        }
        let seconds = report["seconds"].as_f64().unwrap_or_default();
        Said { verdict, faults, per_request, seconds }
    }

    fn exit_code(&self, verdict: &str) -> u8 {
        match verdict {
            "INVALID" | "INCONCLUSIVE" => 3,
            "LEAKING" | "MAPPINGS" | "GROWS-WHEN-IDLE" => 1,
            _ if self.findings.iter().any(|kind| kind == "descriptors") => 1,
            _ => 0,
        }
    }
}

/// That the stack that grows most does not pass through this line; none when it does.
fn other_line(report: &Value, (source, line): &(String, u64)) -> Option<String> {
    let frames = report["stacks"][0]["frames"].as_array();
    // The compiler is told paths from where it runs: the last two parts are the same everywhere.
    let parts: Vec<&str> = source.rsplit('/').take(2).collect();
    let end = format!("{}/{}", parts[1], parts[0]);
    let is_it = |frame: &Value| {
        frame["file"].as_str().is_some_and(|file| file.ends_with(&end))
            && frame["line"].as_u64() == Some(*line)
    };
    let named = frames.is_some_and(|frames| frames.iter().any(is_it));
    let name = |frame: &Value| format!("{} ({}:{})", frame["function"], frame["file"], frame["line"]);
    let found: Vec<String> = frames.into_iter().flatten().take(12).map(name).collect();
    let growth = &report["stacks"][0]["bytes_per_request"];
    (!named)
        .then(|| format!("{source}:{line} is not in the first stack, of {growth} B: {}", found.join(", ")))
}

fn missing(report: &Value, kind: &str) -> Option<String> {
    let found = report["findings"].as_array().into_iter().flatten().any(|finding| finding["kind"] == kind);
    (!found).then(|| format!("{kind} were not found"))
}

/// The line of a source that carries the marker.
pub fn line_of(source: &str, marker: &str) -> u64 {
    let text = fs::read_to_string(sources().join(source)).expect("a source can be read");
    // A marker may begin like another one: `LEAK leak1k` and `LEAK leak1k_every64`.
    let is_it = |line: &str| {
        line.split_once(marker)
            .is_some_and(|(_, rest)| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let lines: Vec<u64> =
        text.lines().zip(1..).filter(|(line, _)| is_it(line)).map(|(_, number)| number).collect();
    assert_eq!(lines.len(), 1, "{source} has `{marker}` on lines {lines:?}");
    lines[0]
}

/// A port that nobody listens at.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}
