//! Real interpreters with the scripts loaded.

use super::*;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Child, ChildStdout, Command, Stdio};

const PATIENCE: Duration = Duration::from_secs(10);

/// A program that prints `ready`, and is killed with the test.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(runtimes: &Runtimes, words: &[&str], set: &[(&str, &str)]) -> Running {
        let set: HashMap<String, OsString> = set.iter().map(|(k, v)| ((*k).to_owned(), v.into())).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env_clear().env("PATH", "/usr/bin:/bin").stdout(Stdio::piped());
        command.envs(&set).envs(runtimes.environment(&|name| set.get(name).cloned()));
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the interpreter is installed");
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Returns the metrics that it reports; its hook may not have connected yet.
    fn metrics(&self, runtimes: &mut Runtimes) -> RuntimeMetrics {
        metrics_of(self.child.id(), runtimes)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn metrics_of(pid: u32, runtimes: &mut Runtimes) -> RuntimeMetrics {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(metrics) = runtimes.collect(&[pid], PATIENCE).pop() {
            assert_eq!(metrics.pid, pid);
            return metrics;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("process {pid} did not answer");
}

const RUBY_PROGRAM: &str =
    "$stdout.sync = true; kept = Array.new(10_000) { Object.new }; 100_000.times { Object.new }
    puts 'ready'; gets; kept = nil; puts 'dropped'; gets";
const PYTHON_PROGRAM: &str = "import sys
kept = [(n,) for n in range(10000)]
cycle = []; cycle.append(cycle); del cycle
print('ready', flush=True); sys.stdin.readline(); kept = None; print('dropped', flush=True); sys.stdin.readline()";
const NODE_PROGRAM: &str = "let kept = Array.from({ length: 10000 }, (_, n) => ({ n }));
    for (let n = 0; n < 100000; n++) ({ n }); console.log('ready');
    process.stdin.once('data', () => { kept = null; console.log('dropped'); process.stdin.resume(); });";

/// Keeps 10,000 objects, which are in the metrics, and no longer are after they are dropped.
fn dropped_objects_are_gone(words: &[&str], bytes: u64) {
    let mut runtimes = Runtimes::open().unwrap();
    let mut running = Running::start(&runtimes, words, &[]);
    assert_eq!(running.line(), "ready");
    // The first collection frees what loading the program left behind.
    running.metrics(&mut runtimes);
    let kept = running.metrics(&mut runtimes);
    running.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(running.line(), "dropped");
    running.metrics(&mut runtimes);
    let dropped = running.metrics(&mut runtimes);
    let less = kept.managed_bytes.saturating_sub(dropped.managed_bytes);
    assert!(less.abs_diff(bytes) < bytes / 5, "{less} bytes less, {bytes} expected: {kept:?} {dropped:?}");
    // The hook's own allocations must not look like a leak. V8 compiles it in the first collections.
    let mut after = |collections: u32| {
        (0..collections).for_each(|_| drop(running.metrics(&mut runtimes)));
        running.metrics(&mut runtimes).managed_bytes
    };
    let (early, late) = (after(60), after(60));
    assert!(early.abs_diff(late) < 16 << 10, "{early} then {late}");
}

#[test]
fn ruby_collects_and_tells() {
    dropped_objects_are_gone(&["/usr/bin/ruby", "-e", RUBY_PROGRAM], 10_000 * 40);
}

#[test]
fn python_collects_and_tells() {
    // A tuple of one (48 bytes with its collector's header: 64) and an int of 28 (32) each.
    dropped_objects_are_gone(&["/usr/bin/python3", "-c", PYTHON_PROGRAM], 10_000 * 96);
}

#[test]
fn node_collects_and_tells() {
    // An object literal of one property (four slots of 8 bytes; the array's 8).
    dropped_objects_are_gone(&["/usr/bin/node", "-e", NODE_PROGRAM], 10_000 * 40);
}

/// A program writes its heap to a private file on request, once, and continues.
fn a_snapshot_is_written(words: &[&str], begins: &str) {
    let mut runtimes = Runtimes::open().unwrap();
    let running = Running::start(&runtimes, words, &[]);
    running.metrics(&mut runtimes);
    let (folder, pid) = (tempfile::tempdir().unwrap(), running.child.id());
    let file = folder.path().join("with a blank");
    assert_eq!(runtimes.snapshot(pid, &file, PATIENCE), Ok(()));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(begins) && text.len() > 100_000, "{} bytes", text.len());
    assert!(runtimes.snapshot(pid, &file.join("no folder"), PATIENCE).is_err());
    assert!(runtimes.snapshot(pid, Path::new("two\nlines"), PATIENCE).is_err());
    assert_eq!(running.metrics(&mut runtimes).pid, pid, "it answers as before");
}

#[test]
fn ruby_writes_a_snapshot() {
    a_snapshot_is_written(&["/usr/bin/ruby", "-e", RUBY_PROGRAM], "{\"type\":\"ROOT\"");
}

#[test]
fn python_writes_a_snapshot() {
    a_snapshot_is_written(&["/usr/bin/python3", "-c", PYTHON_PROGRAM], "{\"mallow\":\"python-heap/1\"");
}

#[test]
fn node_writes_a_snapshot() {
    a_snapshot_is_written(&["/usr/bin/node", "-e", NODE_PROGRAM], "{\"snapshot\":{");
}

#[test]
fn a_program_with_the_hook_ends_when_its_work_is_done_and_says_nothing_more() {
    let runtimes = Runtimes::open().unwrap();
    let programs = [
        ["/usr/bin/ruby", "-w", "-e", "puts 1"],
        ["/usr/bin/python3", "-Wall", "-c", "print(1)"],
        ["/usr/bin/node", "--trace-warnings", "-e", "console.log(1)"],
    ];
    for words in programs {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env_clear().envs(runtimes.environment(&|_| None));
        let output = command.output().unwrap();
        let said = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((said.0.as_str(), said.1.as_str()), ("1\n", ""), "{}", words[0]);
        assert!(output.status.success());
    }
}

#[test]
fn a_program_without_a_mallow_to_talk_to_runs_as_ever() {
    let runtimes = Runtimes::open().unwrap();
    let mut environment = runtimes.environment(&|_| None);
    environment.last_mut().unwrap().1 = "@mallow-soak-nobody-listens-here".into();
    for words in [["/usr/bin/ruby", "-e", "puts 1"], ["/usr/bin/node", "-e", "console.log(1)"]] {
        let output = Command::new(words[0]).args(&words[1..]).envs(environment.clone()).output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"1\n"[..], &b""[..]));
    }
}

#[test]
fn forked_children_answer_for_themselves() {
    let ruby = "$stdout.sync = true; puts fork { sleep }; sleep";
    let python = "import os, time\npid = os.fork()\nif pid: print(pid, flush=True)\ntime.sleep(60)";
    for words in [["/usr/bin/ruby", "-e", ruby], ["/usr/bin/python3", "-c", python]] {
        let mut runtimes = Runtimes::open().unwrap();
        let mut running = Running::start(&runtimes, &words, &[]);
        let child: u32 = running.line().parse().unwrap();
        metrics_of(child, &mut runtimes);
        running.metrics(&mut runtimes);
        let both = runtimes.collect(&[running.child.id(), child], PATIENCE);
        assert_eq!(both.len(), 2, "{both:?}");
        let pid = rustix::process::Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn a_program_that_closes_all_descriptors_is_asked_again() {
    let ruby = "$stdout.sync = true; sleep 0.3; (3..1023).each { |n| IO.for_fd(n).close rescue nil }; puts 'closed'; sleep";
    let python = "import os, time; time.sleep(0.3); os.closerange(3, 1024); print('closed', flush=True); time.sleep(60)";
    for words in [["/usr/bin/ruby", "-e", ruby], ["/usr/bin/python3", "-c", python]] {
        let mut runtimes = Runtimes::open().unwrap();
        let mut running = Running::start(&runtimes, &words, &[]);
        assert_eq!(running.line(), "closed");
        running.metrics(&mut runtimes);
        running.metrics(&mut runtimes);
    }
}

#[test]
fn what_was_set_before_still_works() {
    let mut runtimes = Runtimes::open().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().to_str().unwrap();
    fs::write(folder.path().join("sitecustomize.py"), "import builtins; builtins.other = 'mine'").unwrap();
    fs::write(folder.path().join("other.rb"), "OTHER = 'mine'").unwrap();
    fs::write(folder.path().join("other.js"), "globalThis.other = 'mine'").unwrap();
    let python = "import time, sys; print(other, len([p for p in sys.path if 'mallow' in p]), flush=True); time.sleep(60)";
    let ruby_options = format!("-r{other}/other.rb");
    let node_options = format!("--require={other}/other.js");
    let cases: [(&[&str], (&str, &str), &str); 3] = [
        (&["/usr/bin/python3", "-c", python], ("PYTHONPATH", other), "mine 0"),
        (
            &["/usr/bin/ruby", "-e", "$stdout.sync = true; puts OTHER; sleep"],
            ("RUBYOPT", &ruby_options),
            "mine",
        ),
        (
            &["/usr/bin/node", "-e", "console.log(other); setTimeout(() => {}, 60000)"],
            ("NODE_OPTIONS", &node_options),
            "mine",
        ),
    ];
    for (words, set, said) in cases {
        let mut running = Running::start(&runtimes, words, &[set]);
        assert_eq!(running.line(), said);
        running.metrics(&mut runtimes);
    }
}

#[test]
fn a_process_that_does_not_answer_costs_no_more_than_the_time_given() {
    let mut runtimes = Runtimes::open().unwrap();
    let mut running = Running::start(
        &runtimes,
        &["/usr/bin/node", "-e", "console.log('busy'); setTimeout(() => { for (;;); }, 200)"],
        &[],
    );
    assert_eq!(running.line(), "busy");
    std::thread::sleep(Duration::from_millis(400));
    let start = Instant::now();
    assert_eq!(runtimes.collect(&[running.child.id()], Duration::from_millis(300)), []);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(290) && took < Duration::from_secs(2), "{took:?}");
    // Without processes it returns at once.
    let start = Instant::now();
    assert_eq!(runtimes.collect(&[std::process::id()], PATIENCE), []);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn strangers_are_not_believed() {
    let mut runtimes = Runtimes::open().unwrap();
    let address = SocketAddr::from_abstract_name(runtimes.hooks.name()).unwrap();
    let mut stranger = UnixStream::connect_addr(&address).unwrap();
    stranger
        .write_all(
            b"{\"runtime\":\"ruby\",\"pid\":1,\"managed_bytes\":1,\"objects\":1,\"in_malloc\":false}\n",
        )
        .unwrap();
    assert_eq!(runtimes.collect(&[1], Duration::from_millis(200)), []);
    stranger.write_all(b"no JSON\n").unwrap();
    assert_eq!(runtimes.collect(&[std::process::id()], Duration::from_millis(200)), []);
}

#[test]
fn a_jvm_collects_and_tells() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Holder.java");
    let text = "public class Holder { public static void main(String[] a) throws Exception {
        byte[][] kept = new byte[20][]; for (int n = 0; n < 20; n++) kept[n] = new byte[1 << 20];
        System.out.println(\"ready\"); System.in.read(); kept = null; System.out.println(\"dropped\"); System.in.read(); } }";
    fs::write(&source, text).unwrap();
    let mut runtimes = Runtimes::open().unwrap();
    let mut running = Running::start(&runtimes, &["/usr/bin/java", source.to_str().unwrap()], &[]);
    assert_eq!(running.line(), "ready");
    let kept = running.metrics(&mut runtimes);
    assert_eq!(kept.name, "jvm");
    assert!(kept.metrics["nmt_total"] > 20e6, "{kept:?}");
    running.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(running.line(), "dropped");
    let start = Instant::now();
    let less = kept.managed_bytes - running.metrics(&mut runtimes).managed_bytes;
    assert!(less >= 19 << 20, "{less} bytes less");
    assert!(start.elapsed() < Duration::from_secs(3), "the second time it listens");
}
