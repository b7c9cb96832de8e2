//! Servers and inputs that cannot be soaked: a sentence, the exit code, and no process left running.

use e2e::program::build_text;
use e2e::soak::{Mode, free_port};
use e2e::{Exit, Finished, Workshop, run};
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn mode(name: &str) -> &'static Mode {
    e2e::soak::mode(Path::new(env!("CARGO_TARGET_TMPDIR")), "rust", name)
}

/// Returns the processes whose command line contains this word.
fn running(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let lines = processes.filter_map(|path| {
        let line = fs::read(path.join("cmdline")).ok()?;
        Some(format!("{} {}", path.display(), String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    let own = format!("/proc/{} ", std::process::id());
    lines.filter(|line| line.contains(word) && !line.starts_with(&own)).collect()
}

/// Runs `mallow soak` at this port.
fn soak(port: u16, more: &[&str], server: &[&str]) -> Finished {
    let url = format!("http://127.0.0.1:{port}/");
    run::finish(run::mallow().args(["soak", "--url", &url]).args(more).arg("--").args(server))
}

/// Asserts that it is refused in one sentence, with everything that `parts` names, and without a verdict.
#[track_caller]
fn is_refused(finished: Finished, parts: &[&str]) {
    let finished = finished.ended(Exit::Status(2));
    assert_eq!(finished.stdout, "", "{finished}");
    for part in parts {
        assert!(finished.stderr.contains(part), "no `{part}`\n{finished}");
    }
    assert!(!finished.stderr.contains("panicked"), "{finished}");
}

#[test]
fn a_server_that_never_gets_ready_is_ended() {
    let port = free_port();
    let word = format!("60.0{port}");
    let finished =
        soak(port, &["--ready-timeout", "1s"], &["/bin/sh", "-c", &format!("echo waiting; sleep {word}")]);
    is_refused(finished, &["not ready after 1 s", "waiting"]);
    assert_eq!(running(&word), [] as [&str; 0]);
}

#[test]
fn a_server_that_listens_elsewhere_is_found_there() {
    let (asked, listens) = (free_port(), free_port());
    let server = ["python3", "-m", "http.server", "--bind", "127.0.0.1", &listens.to_string()];
    let finished = soak(asked, &["--ready-timeout", "5s"], &server);
    is_refused(
        finished,
        &["not ready after 5 s", &format!("perhaps --url http://127.0.0.1:{listens}/ is meant")],
    );
}

#[test]
fn a_server_that_ends_at_once_is_said_to_have_ended() {
    let started = Instant::now();
    let finished = soak(free_port(), &[], &["/bin/sh", "-c", "echo no configuration >&2; exit 7"]);
    is_refused(finished, &["ended before it was ready", "7", "no configuration"]);
    assert!(started.elapsed() < Duration::from_secs(15), "nobody waits for the dead");
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    is_refused(soak(free_port(), &[], &["no-such-server-here"]), &["no-such-server-here"]);
}

#[test]
fn a_server_that_dies_half_way_proves_nothing() {
    let mode = mode("dies");
    let finished = mode.soak(&["--iterations", "20", "--requests", "1000"]);
    let said = mode.judge(&finished);
    assert!(said.faults.is_empty() && said.verdict == "INVALID", "{said:#?}\n{finished}");
    assert!(finished.stdout.contains("exit status 3"), "{finished}");
    assert_eq!(running("soak-server --mode dies"), [] as [&str; 0]);
}

/// `--max-time` ends a soak, even if requests are in flight.
#[test]
fn a_server_that_takes_its_time_is_not_waited_for() {
    let (port, workshop) = (free_port(), Workshop::new("soak-slow"));
    let script = workshop.file("slow.py");
    let slow = "import http.server, sys, time\n\
                class Slow(http.server.BaseHTTPRequestHandler):\n\
                \x20   def do_GET(self):\n\
                \x20       time.sleep(60)\n\
                http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Slow).serve_forever()\n";
    fs::write(&script, slow).unwrap();
    let server = ["python3", &script.to_string_lossy(), &port.to_string()];
    let word = format!("60.1{port}");
    for work in [&[][..], &["--exec", &format!("sleep {word}")]] {
        let url = format!("http://127.0.0.1:{port}/");
        let (mut mallow, started) = (run::mallow(), Instant::now());
        mallow.args(["soak", "--max-time", "2s", "--ready", &format!("port:{port}")]);
        mallow.args(if work.is_empty() { vec!["--url", &url] } else { work.to_vec() });
        let finished = run::finish(mallow.arg("--").args(server)).ended(Exit::Status(3));
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}\n{finished}", started.elapsed());
        assert_eq!(running(&word), [] as [&str; 0], "{finished}");
        // It was idle before its first request, and never again. The soak does not wait for it at the end, so what it
        // does then does not count as growth while idle.
        assert!(finished.stdout.starts_with("INCONCLUSIVE"), "{finished}");
        let rows = finished.stderr.lines().filter(|line| line.contains(" idle "));
        assert_eq!(rows.count(), 1, "{finished}");
    }
}

/// It leaves its family and its group, and its parent ends: it is known by its recording.
#[test]
fn a_server_that_goes_into_the_background_is_observed_and_ended() {
    let workshop = Workshop::new("soak-background");
    let port = free_port();
    let folder = workshop.path().to_string_lossy().into_owned();
    let settings = format!(
        "daemon on;\npid {folder}/pid;\nevents {{ }}\nhttp {{ access_log off; server {{ listen 127.0.0.1:{port}; return 200 ok; }} }}\n"
    );
    fs::write(workshop.file("nginx.conf"), settings).unwrap();
    let server = ["/usr/sbin/nginx", "-p", &folder, "-c", "nginx.conf", "-e", "error.log"];
    let finished = soak(port, &["--json", "--max-time", "2s"], &server);
    let report = e2e::session::json(&finished.stdout);
    let samples = report["samples"].as_array().unwrap();
    assert!(!samples.is_empty(), "{finished}");
    for sample in samples {
        assert_eq!(sample["processes"], 2, "{sample:#}");
        assert!(sample["descriptors"].as_u64() > Some(6), "{sample:#}");
    }
    assert_eq!(running(&folder), [""; 0], "{finished}");
}

/// Answers requests; asked to end, it leaves a process in the background that comes to its first call after half a second, and
/// that does not end when it is asked to.
const LEAVES_A_LATECOMER: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *self;

/* Not by fork, whose child is recorded before it becomes another program. */
static void begin(char *what) {
    char *words[] = {self, what, 0};
    signal(SIGTERM, SIG_IGN);
    posix_spawnattr_t setting;
    posix_spawnattr_init(&setting);
    posix_spawnattr_setflags(&setting, POSIX_SPAWN_SETSID);
    posix_spawn(&(pid_t){0}, self, 0, &setting, words, environ);
    _exit(0);
}

static void leave(int asked) {
    (void)asked;
    begin("between");
}

static int latecomer(void) {
    if (creat("began", 0600) < 0)
        return 1;
    usleep(500000);
    char *volatile block = malloc(1000);
    sleep(20);
    free(block);
    return creat("went-on", 0600) < 0;
}

int main(int count, char **words) {
    if (count != 2 || chdir(dirname(strdup(words[0]))))
        return 1;
    if (!strcmp(words[1], "latecomer"))
        return latecomer();
    self = words[0];
    if (!strcmp(words[1], "between"))
        begin("latecomer");
    signal(SIGTERM, leave);
    int one = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) || listen(listening, 64))
        return 1;
    for (;;) {
        char request[4096], answer[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
        int connection = accept(listening, 0, 0);
        free(malloc(100));
        if (read(connection, request, sizeof request) > 0 && write(connection, answer, sizeof answer - 1) < 0)
            return 1;
        close(connection);
    }
}
"#;

/// Nobody knows it when the server is asked to end: it has left everything, and its recording begins later.
#[test]
fn what_a_server_leaves_behind_at_its_end_is_ended_too() {
    let workshop = Workshop::new("soak-latecomer");
    let port = free_port();
    let server = build_text(workshop.path(), "server", LEAVES_A_LATECOMER);
    let server = server.to_string_lossy().into_owned();
    let finished = soak(port, &["--max-time", "2s"], &[&server, &port.to_string()]);
    assert_eq!(running(&format!("{server} latecomer")), [""; 0], "{finished}");
    let files = ["began", "went-on"].map(|name| workshop.file(name).exists());
    assert_eq!(files, [true, false], "{finished}");
    assert!(
        ["INCONCLUSIVE", "CLEAN", "PLATEAU"].iter().any(|it| finished.stdout.starts_with(it)),
        "{finished}"
    );
}

/// It becomes another user's, and mallow may not send signals to other users'. Its recording is ended without it.
#[test]
fn a_server_that_may_not_be_killed_is_left_and_named() {
    let workshop = Workshop::new("soak-left");
    let (port, program) = (free_port(), workshop.file("server.py"));
    let text = "import http.server, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()\n";
    fs::write(&program, text).unwrap();
    fs::set_permissions(workshop.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (url, port) = (format!("http://127.0.0.1:{port}/"), port.to_string());
    let program = program.to_string_lossy();
    let mut command = run::command("setpriv");
    command.args(["--bounding-set=-kill", "--inh-caps=-kill"]).arg(run::mallow_binary());
    command.args([
        "soak",
        "--url",
        &url,
        "--max-time",
        "2s",
        "--",
        "setpriv",
        "--reuid=65534",
        "--clear-groups",
    ]);
    let finished = run::finish(command.args(["/usr/bin/python3", &program, &port]));
    let left = running(&program);
    let ended = Command::new("pkill").args(["-KILL", "-f", &program]).status();
    assert_eq!(left.len(), 1, "{finished}");
    assert!(ended.is_ok_and(|ended| ended.success()), "{left:?}");
    let words = finished.stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("it still ran when this was ended"), "{finished}");
}

/// The C library changes the user of all threads, and aborts a process if the results differ: mallow's thread does
/// not have the capabilities that another thread has kept.
#[test]
fn a_server_that_keeps_rights_while_its_user_changes_goes_on() {
    let port = free_port();
    let server =
        ["python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "/usr/share/doc/bash"];
    // Only root may.
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let words = if fs::metadata("/proc/self").unwrap().uid() == 0 { &user[..] } else { &["env"] };
    let at = port.to_string();
    let words = [words, &server, &[at.as_str()]].concat();
    let finished = soak(port, &["--max-time", "2s", "--ready-timeout", "20s"], &words);
    assert!(!finished.stderr.contains("killed by signal"), "{finished}");
    let verdict = finished.stdout.split([' ', ':']).next().unwrap_or_default();
    assert!(["INCONCLUSIVE", "CLEAN", "PLATEAU"].contains(&verdict), "{finished}");
}

/// The kernel refuses these namespaces to a process of several threads, and one is mallow's.
#[test]
fn a_server_that_wants_namespaces_of_its_own_has_them() {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let pid = std::process::id().to_string();
    let ours = ["nsenter", "--target", &pid, "--mount"];
    let new = ["unshare", "--user", "--map-root-user"];
    for wrapper in [&new[..], &ours].into_iter().take(if is_root { 2 } else { 1 }) {
        let port = free_port();
        let at = port.to_string();
        let server = [
            "python3",
            "-m",
            "http.server",
            "--bind",
            "127.0.0.1",
            "--directory",
            "/usr/share/doc/bash",
            &at,
        ];
        let words = [wrapper, &server].concat();
        let finished = soak(port, &["--max-time", "2s", "--ready-timeout", "20s"], &words);
        let verdict = finished.stdout.split([' ', ':']).next().unwrap_or_default();
        assert!(["INCONCLUSIVE", "CLEAN", "PLATEAU"].contains(&verdict), "{finished}");
    }
}

#[test]
fn a_server_that_answers_500_proves_nothing() {
    let mode = mode("errors");
    let finished = mode.soak(&["--iterations", "20", "--requests", "1000"]);
    let said = mode.judge(&finished);
    assert!(said.faults.is_empty() && said.verdict == "INVALID", "{said:#?}\n{finished}");
    assert!(finished.stdout.contains("status 500"), "{finished}");
    assert_eq!(running("soak-server --mode errors"), [] as [&str; 0]);
}

#[test]
fn a_port_that_is_taken_is_not_taken_away() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let workshop = Workshop::new("soak-port");
    let mark = workshop.file("started");
    let finished = soak(port, &[], &["/bin/sh", "-c", &format!("touch {}", mark.display())]);
    is_refused(finished, &["is taken", &port.to_string(), &format!("process {}", std::process::id())]);
    assert!(!mark.exists(), "the server must not be started");
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("who listened still does");
}

#[test]
fn a_malformed_list_of_urls_is_refused_with_its_line_before_anything_starts() {
    let workshop = Workshop::new("soak-urls");
    let (urls, mark) = (workshop.file("urls.txt"), workshop.file("started"));
    fs::write(&urls, "http://127.0.0.1:3030/good\nhttp://[broken/\n").unwrap();
    let server = format!("touch {}; sleep 60", mark.display());
    let finished = soak(free_port(), &["--urls", &urls.to_string_lossy()], &["/bin/sh", "-c", &server]);
    is_refused(finished, &["urls.txt", "line 2"]);
    assert!(!mark.exists(), "the server must not be started");
}

#[test]
fn another_machine_is_not_loaded_unless_that_is_allowed() {
    let finished =
        run::finish(run::mallow().args(["soak", "--url", "http://192.0.2.1:80/", "--", "sleep", "60"]));
    is_refused(finished, &["--allow-remote"]);
}

#[test]
fn an_interrupted_soak_leaves_no_server() {
    let mode = mode("clean");
    let port = free_port();
    let port_word = port.to_string();
    let mut mallow = run::mallow();
    mallow.args(["soak", "--requests", "1000", "--url", &format!("http://127.0.0.1:{port}/"), "--"]);
    mallow.args(&mode.command).args(["--port", &port_word]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = mallow.spawn().unwrap();
    let line = format!("--mode clean --port {port}");
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(started.elapsed() < Duration::from_secs(30), "the server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(
        run::finish(Command::new("kill").args(["-INT", &child.id().to_string()])).exit == Exit::Status(0)
    );
    run::wait(&mut child, "mallow soak");
    assert_eq!(running(&line), [] as [&str; 0]);
}
