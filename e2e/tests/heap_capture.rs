//! Snapshots of running processes: their contents, and that the process does not notice.

use e2e::session::{json, metric};
use e2e::{Exit, Workshop, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const RUBY: &str = "/usr/bin/ruby";
const PATIENCE: Duration = Duration::from_secs(60);

/// A program of `programs/heap` under `mallow heap capture`, or alone; it runs until its input is closed.
pub(crate) struct Running<'a> {
    workshop: &'a Workshop,
    child: Child,
    pub(crate) input: ChildStdin,
    pub(crate) pid: String,
}

impl<'a> Running<'a> {
    pub(crate) fn start(workshop: &'a Workshop, before: &[&str], program: &[&str]) -> Running<'a> {
        Running::start_with(workshop, before, program, &[])
    }

    pub(crate) fn start_with(
        workshop: &'a Workshop,
        before: &[&str],
        program: &[&str],
        set: &[(&str, &Path)],
    ) -> Running<'a> {
        let mut command = if before.is_empty() { run::command(program[0]) } else { run::mallow() };
        if before.is_empty() {
            command.args(&program[1..]);
        } else {
            command.args(["heap", "capture"]).args(before).arg("--").args(program);
        }
        command.current_dir(workshop.path()).stdin(Stdio::piped()).envs(set.iter().copied());
        command.stdout(File::create(workshop.file("stdout")).unwrap());
        command.stderr(File::create(workshop.file("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let pid = said(workshop, "ready ");
        Running { workshop, child, input, pid }
    }

    pub(crate) fn capture(&self, arguments: &[&str]) -> run::Finished {
        capture(self.workshop, &self.pid, arguments)
    }

    pub(crate) fn ends(mut self) -> Exit {
        drop(self.input);
        run::wait(&mut self.child, "the program")
    }
}

/// Waits for a word in the program's output, and returns what follows it.
fn said(workshop: &Workshop, word: &str) -> String {
    let text = || fs::read_to_string(workshop.file("stdout")).unwrap();
    until(&format!("it says {word}"), || {
        let text = text();
        let behind = text.lines().find_map(|line| line.strip_prefix(word))?.split(' ').next();
        behind.filter(|_| text.ends_with('\n')).map(str::to_owned)
    })
}

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn capture(workshop: &Workshop, pid: &str, arguments: &[&str]) -> run::Finished {
    run::finish(run::mallow().args(["heap", "capture", pid]).args(arguments).current_dir(workshop.path()))
}

/// Returns a report of `mallow heap`, which must have no warnings.
pub(crate) fn page(workshop: &Workshop, arguments: &[&str]) -> Value {
    let mut mallow = run::mallow();
    let page =
        run::finish(mallow.arg("heap").args(arguments).arg("--json").current_dir(workshop.path())).well();
    assert_eq!(page.stderr, "", "{page}");
    json(&page.stdout)
}

pub(crate) fn program(name: &str) -> String {
    e2e::repository().join("programs/heap").join(name).to_string_lossy().into_owned()
}

pub(crate) fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

/// Returns objects and bytes of the rows whose name contains a word.
pub(crate) fn sums(rows: &Value, word: &str) -> BTreeMap<String, (u64, u64)> {
    let rows = rows.as_array().unwrap().iter();
    let named = rows.filter_map(|row| Some((row["name"].as_str()?.to_owned(), row)));
    let its = named.filter(|(name, _)| name.contains(word));
    its.map(|(name, row)| (name, (metric(row, "objects"), metric(row, "bytes")))).collect()
}

#[test]
fn a_ruby_program_goes_on_while_its_heap_is_written() {
    let workshop = Workshop::new("capture-ruby");
    let keep = program("keep.rb");
    let mut running = Running::start(&workshop, &["-o", "snapshots"], &[RUBY, &keep]);
    let told = running.capture(&["-o", "before.json"]).well();
    let bytes = fs::metadata(workshop.file("before.json")).unwrap().len();
    assert_eq!(told.stderr, format!("wrote before.json, {bytes} bytes\nnext: mallow heap before.json\n"));
    for number in 0..7 {
        writeln!(running.input, "{number}").unwrap();
    }
    sleep(Duration::from_millis(200));
    let _ = running.capture(&["-o", "snapshots"]).well();
    let after = format!("snapshots/ruby.{}.1.json", running.pid);
    for file in ["before.json", &after] {
        assert_eq!(mode(&workshop.file(file)), 0o600);
        let text = fs::read(workshop.file(file)).unwrap();
        assert!(text.ends_with(b"}\n"), "{file}");
        page(&workshop, &[file]);
    }
    let refused = running.capture(&["-o", "before.json"]).ended(Exit::Status(2));
    assert_eq!(refused.stderr, "mallow: before.json exists; a snapshot overwrites no file.\n");
    assert_eq!(fs::metadata(workshop.file("before.json")).unwrap().len(), bytes);

    let diff = page(&workshop, &["diff", "before.json", &after]);
    let orders = diff["new_objects"].as_array().unwrap().iter().filter(|row| row["class"] == "Order");
    let orders: Vec<_> = orders.collect();
    assert_eq!((orders.len(), metric(orders[0], "objects")), (1, 7), "{diff:#}");
    assert!(orders[0]["site"].as_str().unwrap().ends_with("keep.rb:11"), "{diff:#}");
    // They are held, though only by the stack of a thread other than ours.
    let class = page(&workshop, &[&after, "--class", "Order"]);
    assert_eq!((&class["objects"], &class["holders"][0]["name"]), (&1007.into(), &"Array".into()));
    assert!(!class["example"]["path"].as_array().unwrap().is_empty(), "{class:#}");

    let pid = running.pid.clone();
    assert_eq!(running.ends(), Exit::Status(0));
    let text = |name: &str| fs::read_to_string(workshop.file(name)).unwrap();
    assert_eq!(text("stdout"), format!("ready {pid} alone\n1007 orders, constants [], threads 1\nat_exit\n"));
    let note = format!("mallow: note: for a snapshot of its heap: mallow heap capture {pid} -o snapshots\n");
    assert_eq!(text("stderr"), note);
}

#[test]
fn a_forked_ruby_is_captured_by_itself_and_signals_are_the_programs_own() {
    let workshop = Workshop::new("capture-fork");
    let keep = program("keep.rb");
    let running = Running::start(&workshop, &["--no-trace"], &[RUBY, &keep, "fork"]);
    let worker = said(&workshop, "worker ");
    let _ = capture(&workshop, &worker, &["-o", "worker.json"]).well();
    let _ = running.capture(&["-o", "parent.json"]).well();
    for file in ["worker.json", "parent.json"] {
        let page = page(&workshop, &[file]);
        assert_eq!(sums(&page["classes"], "Order")["Order"].0, 1000, "{file}");
        assert_eq!(page["sites"].as_array().unwrap().len(), 0, "nothing was traced: {page:#}");
    }
    // The worker ends with it.
    let _ = run::finish(run::command("kill").args(["-TERM", &running.pid])).well();
    assert_eq!(running.ends(), Exit::Status(3));
}

#[test]
fn a_redacted_snapshot_has_all_but_the_contents() {
    let workshop = Workshop::new("capture-redact");
    let keep = program("keep.rb");
    let running = Running::start(&workshop, &["--redact"], &[RUBY, &keep]);
    let _ = running.capture(&["-o", "open.json"]).well();
    let _ = running.capture(&["-o", "closed.json", "--redact"]).well();
    let has = |name: &str| fs::read_to_string(workshop.file(name)).unwrap().contains("the-secret-list");
    assert!(has("open.json") && !has("closed.json"));
    let (open, closed) = (page(&workshop, &["open.json"]), page(&workshop, &["closed.json"]));
    let sites = sums(&open["sites"], "keep.rb");
    assert!(sites.len() > 2, "{open:#}");
    assert_eq!(sums(&closed["sites"], "keep.rb"), sites);
    assert_eq!(sums(&closed["classes"], "Order"), sums(&open["classes"], "Order"));
    let wasted = |page: &Value| metric(&page["strings"][0], "wasted_bytes");
    assert_eq!(wasted(&closed), wasted(&open));
    assert_eq!(running.ends(), Exit::Status(0));
}

#[test]
fn snapshots_come_by_themselves() {
    let workshop = Workshop::new("capture-every");
    let keep = program("keep.rb");
    let running = Running::start(&workshop, &["-o", "snapshots", "--every", "300ms"], &[RUBY, &keep]);
    let second = workshop.file(&format!("snapshots/ruby.{}.2.json", running.pid));
    until("two snapshots are there", || second.exists().then_some(()));
    page(&workshop, &[second.to_str().unwrap()]);
    assert_eq!(running.ends(), Exit::Status(0));
}

#[test]
fn workers_are_captured_beside_the_command_that_started_them() {
    let workshop = Workshop::new("capture-every-worker");
    // A shell cannot be captured, and this is not reported.
    let script = format!("{RUBY} '{}'; exit $?", program("keep.rb"));
    let running = Running::start(&workshop, &["-o", "snapshots", "--every", "900ms"], &["sh", "-c", &script]);
    let second = workshop.file(&format!("snapshots/ruby.{}.2.json", running.pid));
    until("two snapshots are there", || second.exists().then_some(()));
    page(&workshop, &[second.to_str().unwrap()]);
    // A pid of the shell, or of mallow, is refused with a message that names the interpreter.
    let refused = capture(&workshop, &running.child.id().to_string(), &[]).ended(Exit::Status(2));
    let told = format!("it has started {} (ruby): mallow heap capture {}", running.pid, running.pid);
    assert!(refused.stderr.contains(&told), "{refused}");
    assert_eq!(running.ends(), Exit::Status(0));
    let said = fs::read_to_string(workshop.file("stderr")).unwrap();
    assert!(!said.contains("no Ruby"), "{said}");
}

#[test]
fn node_is_asked_by_its_signal() {
    let workshop = Workshop::new("capture-node");
    let keep = program("keep.js");
    let running = Running::start(&workshop, &["-o", "."], &["node", &keep]);
    let _ = running.capture(&["-o", "node.heapsnapshot"]).well();
    assert_eq!(mode(&workshop.file("node.heapsnapshot")), 0o600);
    let page = page(&workshop, &["node.heapsnapshot"]);
    assert_eq!(sums(&page["classes"], "Order")["Order"].0, 1000, "{page:#}");
    let refused = running.capture(&["--redact"]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("--redact is for Ruby's and Python's snapshots"), "{refused}");
    assert_eq!(running.ends(), Exit::Status(0));
    // It is moved, not copied.
    assert_eq!(workshop.names(), ["node.heapsnapshot", "stderr", "stdout"]);
    assert!(fs::read_to_string(workshop.file("stdout")).unwrap().ends_with("1000 orders\n"));
}

#[test]
fn a_jvm_is_asked_as_it_is() {
    let workshop = Workshop::new("capture-jvm");
    let mut javac = run::command("javac");
    let _ = run::finish(javac.arg("-d").arg(workshop.path()).arg(program("Keep.java"))).well();
    let running = Running::start(&workshop, &[], &["java", "-cp", ".", "Keep"]);
    for (file, more) in [("live.hprof", None), ("with blanks.hprof", Some("--all"))] {
        let _ = running.capture(&[&["-o", file], more.as_slice()].concat()).well();
        assert_eq!(mode(&workshop.file(file)), 0o600);
        let page =
            run::finish(run::mallow().args(["heap", file, "--json"]).current_dir(workshop.path())).well();
        assert_eq!(sums(&json(&page.stdout)["classes"], "Keep$Order")["Keep$Order"].0, 1000);
    }
    let refused = running.capture(&["-o", "live.hprof"]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("live.hprof exists"), "{refused}");
    assert_eq!(running.ends(), Exit::Status(0));
}

#[test]
fn who_cannot_be_asked_is_told_with_the_cure() {
    let workshop = Workshop::new("capture-refused");
    let keep = [program("keep.rb"), program("keep.js")];
    for (words, cure) in [
        (&[RUBY, &keep[0]], "mallow has no hook in it; start it with mallow heap capture -- COMMAND"),
        (&["node", &keep[1]], "without --heapsnapshot-signal; start it with mallow heap capture -- COMMAND"),
    ] {
        let running = Running::start(&workshop, &[], words);
        let refused = running.capture(&[]).ended(Exit::Status(2));
        assert!(refused.stderr.contains(cure), "{refused}");
        assert_eq!(running.ends(), Exit::Status(0));
    }
    let mut other = run::command("sleep").arg("60").spawn().unwrap();
    let pid = other.id().to_string();
    until("sleep has begun", || {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n").then_some(())
    });
    let refused = capture(&workshop, &pid, &[]).ended(Exit::Status(2));
    assert!(
        refused.stderr.contains(&format!(
            "process {pid} (sleep) is no Ruby, Python, Node or JVM process, and has started none"
        )),
        "{refused}"
    );
    other.kill().unwrap();
    other.wait().unwrap();
    let refused = capture(&workshop, &pid, &[]).ended(Exit::Status(2));
    assert_eq!(refused.stderr, format!("mallow: there is no process {pid}.\n"));
    assert_eq!(workshop.names(), ["stderr", "stdout"]);
}

#[test]
fn node_tells_where_objects_were_made_if_it_was_asked_to_track_that() {
    let workshop = Workshop::new("node-tracked");
    let mut node = run::command("node");
    let _ = run::finish(node.arg(program("tracked.js")).arg("t.heapsnapshot").current_dir(workshop.path()))
        .well();
    let report = page(&workshop, &["t.heapsnapshot"]);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 0, "{:#}", report["warnings"]);
    // The line is that of the function that allocated them.
    let class = page(&workshop, &["t.heapsnapshot", "--class", "Visit"]);
    let sites: Vec<_> = class["sites"].as_array().unwrap().iter().collect();
    assert_eq!(sites.len(), 1, "{class:#}");
    assert!(sites[0]["name"].as_str().unwrap().ends_with("programs/heap/tracked.js:13"), "{class:#}");
    assert_eq!((&class["objects"], &sites[0]["objects"]), (&1000.into(), &1000.into()), "{class:#}");
}
