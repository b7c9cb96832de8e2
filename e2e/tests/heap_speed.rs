//! The cost of reading a large heap, compared with heapy and DevTools' own algorithm. Counts are exact, times are
//! printed:
//! `MALLOW_BIN=FILE/mallow cargo test -p e2e --test all -- --ignored --nocapture heap_speed::`.

use e2e::session::{json, metric};
use e2e::{Workshop, run};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The time of a command, and its peak memory.
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    megabytes: f64,
    pub(crate) stdout: String,
}

/// Runs a command under GNU's or bash's `time`, which knows the peak memory of a child that has exited.
pub(crate) fn cost(name: &str, command: &mut Command, folder: &Path) -> Cost {
    let program = command.get_program().to_owned();
    let mut timed = run::command("/usr/bin/python3");
    let script = "import os,resource,subprocess,sys\n\
        done = subprocess.run(sys.argv[2:])\n\
        open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n\
        sys.exit(done.returncode)";
    let kibibytes = folder.join("kib");
    timed.args(["-c", script]).arg(&kibibytes).arg(program).args(command.get_args()).current_dir(folder);
    let start = Instant::now();
    let finished = run::finish(&mut timed).well();
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = fs::read_to_string(&kibibytes).unwrap().trim().parse::<f64>().unwrap() * 1024.0 / 1e6;
    eprintln!("{name:<44} {seconds:6.2} s {megabytes:7.0} MB");
    Cost { seconds, megabytes, stdout: finished.stdout }
}

pub(crate) fn mallow(words: &[&str]) -> Command {
    let mut command = run::mallow();
    command.arg("heap").args(words);
    command
}

#[test]
#[ignore = "for its times: in `cargo xtask long`"]
fn a_ruby_dump_of_three_million_objects() {
    let workshop = Workshop::new("heap-speed");
    let folder = workshop.path();
    let script = "require 'objspace'\nObjectSpace.trace_object_allocations_start\n\
        class Session; def initialize(i); @data = \"session data #{i}\" * 10; @list = [i, i + 1, \"x#{i}\"]; end; end\n\
        KEPT = []\n\
        %w[before after].each do |name|\n\
        \x20 400_000.times { |i| KEPT << Session.new(i) }\n  GC.start\n\
        \x20 File.open(\"#{name}.json\", 'w') { |file| ObjectSpace.dump_all(output: file) }\nend\n";
    fs::write(workshop.file("dump.rb"), script).unwrap();
    let _ = run::finish(run::command("/usr/bin/ruby").arg("dump.rb").current_dir(folder)).well();
    let gigabytes = fs::metadata(workshop.file("after.json")).unwrap().len() as f64 / 1e9;
    eprintln!("a dump of {gigabytes:.2} GB");
    let whole = cost("mallow heap", &mut mallow(&["after.json", "--json"]), folder);
    let classes = json(&whole.stdout);
    let class = |name: &str| {
        classes["classes"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(metric(&class("Session"), "objects"), 800_000);
    assert_eq!(metric(&classes, "unreachable_objects"), 0);
    let read = cost("mallow heap --compat heapy", &mut mallow(&["after.json", "--compat", "heapy"]), folder);
    let heapy = cost("heapy read", run::command("heapy").args(["read", "after.json"]), folder);
    assert_eq!(read.stdout.lines().nth(5), heapy.stdout.lines().nth(5));
    let diff = cost(
        "mallow heap diff",
        &mut mallow(&["diff", "before.json", "after.json", "--compat", "heapy"]),
        folder,
    );
    let heapy_diff =
        cost("heapy diff", run::command("heapy").args(["diff", "before.json", "after.json"]), folder);
    let new_sessions = |text: &str| {
        let line =
            text.lines().find(|line| line.starts_with("Allocated OBJECT")).expect("a line of the sessions");
        line.split(' ').nth(2).unwrap().parse::<u64>().unwrap()
    };
    // heapy takes an object at an old one's address for that one.
    assert!(
        new_sessions(&diff.stdout) == 400_000 && new_sessions(&heapy_diff.stdout) <= 400_000,
        "{}",
        heapy_diff.stdout
    );
    eprintln!(
        "read: {:.1} times faster; diff: {:.1} times; {:.2} bytes of memory for each of the dump",
        heapy.seconds / read.seconds,
        heapy_diff.seconds / diff.seconds,
        whole.megabytes / 1000.0 / gigabytes
    );
}

#[test]
#[ignore = "for its size: in `cargo xtask long`"]
fn a_ruby_dump_of_eight_million_objects_takes_less_than_700_megabytes() {
    let workshop = Workshop::new("heap-size");
    let folder = workshop.path();
    let script = "require 'objspace'\nObjectSpace.trace_object_allocations_start\n\
        class Session; def initialize(i); @data = \"session data #{i}\" * 5; @list = [i, i + 1, \"x#{i}\"]; end; end\n\
        KEPT = Array.new(2_000_000) { |i| Session.new(i) }\nGC.start\n\
        File.open('large.json', 'w') { |file| ObjectSpace.dump_all(output: file) }\n";
    fs::write(workshop.file("dump.rb"), script).unwrap();
    let _ = run::finish(run::command("/usr/bin/ruby").arg("dump.rb").current_dir(folder)).well();
    let gigabytes = fs::metadata(workshop.file("large.json")).unwrap().len() as f64 / 1e9;
    eprintln!("a dump of {gigabytes:.2} GB");
    let whole = cost("mallow heap", &mut mallow(&["large.json", "--json"]), folder);
    let report = json(&whole.stdout);
    let classes = report["classes"].as_array().unwrap();
    let sessions = classes.iter().find(|row| row["name"] == "Session").unwrap();
    assert_eq!(metric(sessions, "objects"), 2_000_000);
    assert!(metric(&report, "objects") > 8_000_000);
    assert!(gigabytes > 2.2 && whole.megabytes < 700.0, "{gigabytes} GB took {} MB", whole.megabytes);
}

#[test]
#[ignore = "for its times: in `cargo xtask long`"]
fn a_v8_snapshot_of_millions_of_objects() {
    let workshop = Workshop::new("heap-speed-v8");
    let folder = workshop.path();
    let formats = e2e::repository().join("crates/mallow-formats/tests");
    let script = "class Session { constructor(n) { this.n = n; this.name = 'session ' + n; this.list = [n, { at: n }]; } }\n\
        const kept = new Map();\nfor (let n = 0; n < 500000; n++) kept.set(n, new Session(n));\n\
        require('v8').writeHeapSnapshot(process.argv[2]);\nprocess.exit(kept.size === 500000 ? 0 : 1);\n";
    fs::write(workshop.file("large.js"), script).unwrap();
    let mut node = run::command("node");
    let _ = run::finish(
        node.args(["--max-old-space-size=6000", "large.js", "l.heapsnapshot"]).current_dir(folder),
    )
    .well();
    let megabytes = fs::metadata(workshop.file("l.heapsnapshot")).unwrap().len() as f64 / 1e6;
    eprintln!("a snapshot of {megabytes:.0} MB");
    let judges = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges");
    let pinned = json(&fs::read_to_string(formats.join("devtools_worker/pinned.json")).unwrap());
    let package =
        judges.join(format!("{}-{}", pinned["name"].as_str().unwrap(), pinned["version"].as_str().unwrap()));
    let mut theirs = run::command("node");
    theirs.arg(formats.join("devtools_worker/drive.mjs")).arg(package).args(["l.heapsnapshot", "--no-rows"]);
    let theirs = cost("DevTools' worker", &mut theirs, folder);
    let ours = cost("mallow heap", &mut mallow(&["l.heapsnapshot", "--json"]), folder);
    let classes = json(&ours.stdout);
    let session = classes["classes"].as_array().unwrap().iter().find(|row| row["name"] == "Session").unwrap();
    assert_eq!(metric(session, "objects"), 500_000);
    eprintln!(
        "{:.0} MB/s; {:.3} of DevTools' time, {:.3} of its memory",
        megabytes / ours.seconds,
        ours.seconds / theirs.seconds,
        ours.megabytes / theirs.megabytes
    );
}
