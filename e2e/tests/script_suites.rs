//! Test suites of scripts have the same results under `record` as without it: nothing that a program or its runtime does is changed.

use crate::verified::every_python;
use e2e::run::{self, Finished};
use e2e::{Session, Workshop};
use std::fs;
use std::process::Command;

/// Returns the result of each test, sorted, as `unittest -v` and similar tools print it: output between a test's name and its result is separate.
fn outcomes(printed: &Finished) -> Vec<String> {
    const WORDS: [&str; 5] = ["ok", "FAIL", "ERROR", "skipped", "expected failure"];
    let all = format!("{}\n{}", printed.stdout, printed.stderr);
    let outcome = |line: &str| {
        let (test, behind) = line.rsplit_once(" ... ")?;
        let word = WORDS.into_iter().find(|word| behind.starts_with(word))?;
        Some(format!("{test} {word}"))
    };
    let mut found: Vec<String> = all.lines().filter_map(outcome).collect();
    found.sort();
    found
}

#[test]
#[ignore = "minutes for each interpreter: in `cargo xtask long`"]
fn pythons_own_tests_come_to_what_they_do_without_mallow() {
    const SUITES: [&str; 7] = [
        "test_gc",
        "test_generators",
        "test_threading",
        "test_subprocess",
        "test_asyncio",
        "test_coroutines",
        "test_exceptions",
    ];
    let mut tried = 0;
    for python in every_python() {
        // Distributions leave them out.
        let has_tests = Command::new(&python).args(["-c", "import test.test_gc"]).output().unwrap();
        if !has_tests.status.success() {
            println!("{python}: its tests are not installed");
            continue;
        }
        let workshop = Workshop::new("suites-python");
        let session = Session::new(workshop.path(), &[&[&*python, "-m", "test", "-v"], &SUITES[..]].concat());
        let (bare, recorded) = (outcomes(&session.bare()), outcomes(&session.record()));
        println!("{python}: {} tests", bare.len());
        assert!(bare.len() > 2000, "{python}: {}", bare.len());
        assert_eq!(recorded, bare, "{python}");
        tried += 1;
    }
    assert!(tried > 0, "no Python has its own tests: MALLOW_PYTHONS names one");
}

/// Removes times from the output of a suite, which differ from run to run.
fn without_times(text: &str) -> String {
    let is_time = |line: &&str| {
        let line = line.trim_start_matches(['#', ' ']);
        !["duration", "Run options", "Finished in", "Ran ", "# Running"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    text.lines()
        .filter(is_time)
        .map(|line| format!("{}\n", line.split(" (").next().unwrap_or(line)))
        .collect()
}

const RUBY: &str = "\
require 'minitest/autorun'
class Works < Minitest::Test
  def test_fibers = assert_equal([1, 2], Enumerator.new { |list| list << 1; list << 2 }.to_a)
  def test_threads = assert_equal(20, 20.times.map { |i| Thread.new { 'x' * i * 1000 } }.each(&:join).size)
  def test_child = assert_equal(\"3\\n\", `#{RbConfig.ruby} -e 'puts 3'`)
  def test_moved = assert(GC.compact || true)
  def test_deep = assert_raises(SystemStackError) { deep }
  def deep = deep
  def test_fails = assert_equal(1, 2)
end
";

#[test]
fn suites_of_python_ruby_and_node_print_and_end_as_without_mallow() {
    const PYTHON: &str = "\
import asyncio, gc, subprocess, sys, threading, unittest, weakref
class Works(unittest.TestCase):
    def test_generators(self):
        def numbers():
            try:
                yield 1
            finally:
                self.ended = True
        running = numbers()
        next(running)
        running.close()
        self.assertTrue(self.ended)
    def test_garbage(self):
        class Node: pass
        node = Node(); node.self = node
        gone = weakref.ref(node)
        del node
        gc.collect()
        self.assertIsNone(gone())
    def test_threads(self):
        workers = [threading.Thread(target=list, args=(range(1000),)) for _ in range(20)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
    def test_children(self):
        out = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True)
        self.assertEqual(out.stdout, b'42\\n')
    def test_depth(self):
        def deep(): return deep()
        self.assertRaises(RecursionError, deep)
    def test_tasks(self):
        async def one(): await asyncio.sleep(0); return 1
        async def all(): return await asyncio.gather(*[one() for _ in range(100)])
        self.assertEqual(sum(asyncio.run(all())), 100)
    def test_fails(self):
        self.assertEqual(1, 2)
unittest.main(verbosity=2)
";
    const NODE: &str = "\
const test = require('node:test');
const assert = require('node:assert');
test('promises', async () => assert.equal((await Promise.all([1, 2])).length, 2));
test('workers', async () => {
  const { Worker } = require('node:worker_threads');
  await new Promise((end) => new Worker('1', { eval: true }).on('exit', end));
});
test('children', () => {
  const child = require('node:child_process').execFileSync(process.execPath, ['-p', 'process.execArgv.length']);
  assert.equal(String(child), '0\\n');
});
test('buffers', () => assert.equal(Buffer.allocUnsafeSlow(100000).length, 100000));
";
    for (name, text, words) in [
        ("suite.py", PYTHON, &["/usr/bin/python3", "suite.py"][..]),
        ("suite.rb", RUBY, &["/usr/bin/ruby", "suite.rb", "--seed", "1"]),
        ("suite.test.js", NODE, &["/usr/bin/node", "--test", "--test-reporter=tap", "suite.test.js"]),
    ] {
        let workshop = Workshop::new("suites-short");
        fs::write(workshop.file(name), text).unwrap();
        let session = Session::new(workshop.path(), words);
        let bare = session.bare();
        let recorded = session.record();
        assert_eq!(without_times(&recorded.stdout), without_times(&bare.stdout), "{name}");
        assert_eq!(outcomes(&recorded), outcomes(&bare), "{name}");
        let trace = run::finish(run::mallow().arg("report").arg(session.trace()).arg("--json"));
        assert!(trace.well().stdout.contains("\"language\""), "{name}: nothing was recorded of it");
    }
}
