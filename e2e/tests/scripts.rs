//! The lines of a script on every stack, compared with what its own source states, in every kind of frame.

use e2e::run::{self, command};
use e2e::session::{json, metric, report_of};
use e2e::{Session, Workshop, repository};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// Returns Debian's Pythons, and those of `MALLOW_PYTHONS`, separated by colons.
pub(crate) fn pythons() -> Vec<String> {
    interpreters("/usr/bin/python3", "MALLOW_PYTHONS")
}

/// Returns Debian's Rubies, and those of `MALLOW_RUBIES`, separated by colons.
pub(crate) fn rubies() -> Vec<String> {
    interpreters("/usr/bin/ruby", "MALLOW_RUBIES")
}

/// Returns each Ruby, and Debian's with code that is compiled from the second call on.
fn rubies_and_compiled() -> Vec<Vec<String>> {
    let compiled = ["/usr/bin/ruby", "--yjit", "--yjit-call-threshold=2"].map(str::to_owned).to_vec();
    rubies().into_iter().map(|ruby| vec![ruby]).chain([compiled]).collect()
}

pub(crate) fn interpreters(own: &str, variable: &str) -> Vec<String> {
    let named = std::env::var(variable).unwrap_or_default();
    let named = named.split(':').filter(|path| !path.is_empty()).map(str::to_owned);
    std::iter::once(own.to_owned()).chain(named).collect()
}

/// Returns a program of `programs/scripts`.
pub(crate) fn script(name: &str) -> String {
    repository().join("programs/scripts").join(name).to_string_lossy().into_owned()
}

fn recorded(test: &str, words: &[&str]) -> (Workshop, Session) {
    let workshop = Workshop::new(test);
    let session = Session::new(workshop.path(), words);
    let _ = session.record().well();
    (workshop, session)
}

/// Returns allocations and bytes by the innermost line of a script in a file.
fn by_line(report: &Value, file: &str) -> BTreeMap<u64, (u64, u64)> {
    let mut lines = BTreeMap::new();
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        let Some(frame) = frames.iter().find(|frame| frame["language"].is_string()) else { continue };
        if frame["file"].as_str().unwrap().ends_with(file) {
            let line: &mut (u64, u64) = lines.entry(metric(frame, "line")).or_default();
            line.0 += metric(site, "allocations");
            line.1 += metric(site, "bytes");
        }
    }
    lines
}

/// Returns the metrics that comments at the ends of lines state: `# 3 x 1034`.
fn stated(path: &str) -> BTreeMap<u64, (u64, u64)> {
    let text = fs::read_to_string(path).unwrap();
    let of_line = |(line, text): (u64, &str)| {
        let (count, bytes) = text.rsplit_once("# ")?.1.split_once(" x ")?;
        let (count, bytes): (u64, u64) = (count.parse().ok()?, bytes.parse().ok()?);
        Some((line, (count, count * bytes)))
    };
    (1..).zip(text.lines()).filter_map(of_line).collect()
}

#[test]
fn lines_in_every_kind_of_frame_have_what_the_source_states() {
    let path = script("frames.py");
    let stated = stated(&path);
    assert_eq!(stated.len(), 38);
    for python in pythons() {
        println!("{python}");
        let (_workshop, session) = recorded("scripts-frames", &[&python, &path]);
        let report = session.report(&["--sort", "allocations", "--limit", "100000"]);
        assert_eq!(report["warnings"], serde_json::json!([]), "{python}");
        let mut found = by_line(&report, "/frames.py");
        found.retain(|line, _| stated.contains_key(line));
        assert_eq!(found, stated, "{python}");
        // Code that is created at run time has no file, and a pseudo name for one.
        assert_eq!(by_line(&report, "<string>").get(&2), Some(&(3, 3 * 2033)), "{python}");
    }
}

/// Before its first frame a Python makes thousands of calls, each of which looks whether there is one. A look is a checked read, which is a system call, only
/// the first time: without what is kept of it there are 11,000.
#[test]
fn a_python_that_starts_is_not_asked_for_its_first_frame_by_system_calls() {
    for python in pythons() {
        let workshop = Workshop::new("scripts-start");
        let (calls, trace) = (workshop.file("calls"), workshop.file("started.mallow"));
        let mut strace = command("strace");
        strace.args(["-f", "-c", "-U", "calls,name", "-e", "trace=process_vm_readv", "-o"]).arg(&calls);
        strace.arg(run::mallow_binary()).args(["record", "-o"]).arg(&trace).arg("--");
        let _ = run::finish(strace.args([&python, "-S", "-c", "pass"]).env("PYTHONMALLOC", "malloc")).well();
        let calls = fs::read_to_string(&calls).unwrap();
        let total = calls.lines().find_map(|line| line.trim().strip_suffix(" total")).expect("a total");
        let total: u64 = total.trim().parse().unwrap();
        // Three of them for each code object.
        assert!((1..1000).contains(&total), "{python}: {calls}");
        let report = report_of(&trace, &[]).well().stdout;
        let allocations = metric(&json(&report)["totals"], "allocations");
        assert!(allocations > 5000, "{python}: {allocations}");
    }
}

/// Returns how often each line of a file allocated a megabyte: its other allocations are smaller.
fn megabytes_by_line(report: &Value, file: &str) -> BTreeMap<u64, u64> {
    let lines = by_line(report, file).into_iter().map(|(line, (_, bytes))| (line, bytes / 1_000_000));
    lines.filter(|(_, megabytes)| *megabytes > 0).collect()
}

#[test]
fn lines_in_every_kind_of_frame_of_ruby_have_what_the_source_states() {
    let path = script("frames.rb");
    let text = fs::read_to_string(&path).unwrap();
    let of_line = |(line, text): (u64, &str)| Some((line, text.rsplit_once("# ")?.1.parse::<u64>().ok()?));
    let stated: BTreeMap<u64, u64> = (1..).zip(text.lines()).filter_map(of_line).collect();
    assert_eq!(stated.len(), 74);
    for mut ruby in rubies_and_compiled() {
        println!("{ruby:?}");
        ruby.push(path.clone());
        let words: Vec<&str> = ruby.iter().map(String::as_str).collect();
        let (_workshop, session) = recorded("scripts-frames", &words);
        let report = session.report(&["--sort", "bytes", "--limit", "2000"]);
        assert_eq!(report["warnings"], serde_json::json!([]), "{ruby:?}");
        let mut found = megabytes_by_line(&report, "/frames.rb");
        // A thread has its own stack, which the line that starts it allocates.
        found.retain(|line, _| stated.contains_key(line));
        assert_eq!(found, stated, "{ruby:?}");
    }
}

#[test]
fn code_of_ruby_at_addresses_that_were_used_before_is_code_of_its_own() {
    let mut expected = BTreeMap::new();
    for i in 0..3000 {
        *expected.entry(i * 7 % 363 + 2).or_default() += 1;
    }
    for mut ruby in rubies_and_compiled() {
        println!("{ruby:?}");
        ruby.push(script("reused.rb"));
        let words: Vec<&str> = ruby.iter().map(String::as_str).collect();
        let (_workshop, session) = recorded("scripts-reused", &words);
        let report = session.report(&["--sort", "bytes", "--limit", "2000"]);
        assert_eq!(megabytes_by_line(&report, "made.rb"), expected, "{ruby:?}");
    }
}

/// What a thread frees while mallow stands still is not recorded, but it is gone.
#[test]
fn code_of_ruby_that_went_while_mallow_stood_still_is_not_taken_for_what_came() {
    let (_workshop, session) = recorded("scripts-missed", &["/usr/bin/ruby", &script("missed.rb")]);
    let report = session.report(&["--sort", "bytes", "--limit", "2000"]);
    assert_eq!(report["complete"], false, "mallow stood still");
    let each_once: BTreeMap<u64, u64> = (2..202).map(|line| (line, 1)).collect();
    for file in ["before.rb", "after.rb"] {
        assert_eq!(megabytes_by_line(&report, file), each_once, "{file}");
    }
}

#[test]
fn code_at_addresses_that_were_used_before_is_code_of_its_own() {
    let mut expected = BTreeMap::new();
    for i in 0..3000 {
        let line: &mut (u64, u64) = expected.entry(i * 7 % 363 + 2).or_default();
        *line = (line.0 + 1, line.1 + 1233);
    }
    assert_eq!(expected.len(), 363);
    for python in pythons() {
        println!("{python}");
        let (_workshop, session) = recorded("scripts-reused", &[&python, &script("reused.py")]);
        let report = session.report(&["--sort", "allocations", "--limit", "100000"]);
        assert_eq!(by_line(&report, "made.py"), expected, "{python}");
    }
}

/// Ruby reports the same for what is never freed: each string's bytes at the line that allocated it, in Active
/// Support as well. It reports only strings; a line's other allocations come on top of them.
#[test]
fn ruby_says_the_same_of_the_lines_of_its_texts() {
    let workshop = Workshop::new("scripts-ruby-judged");
    let session = Session::new(workshop.path(), &["/usr/bin/ruby", &script("judged.rb")]);
    let recorded = session.record().well();
    let report = session.report(&["--sort", "leaked", "--limit", "2000"]);
    let mut leaked: BTreeMap<String, u64> = BTreeMap::new();
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        if let Some(frame) = frames.iter().find(|frame| frame["language"] == "ruby") {
            let line = format!("{}:{}", frame["file"].as_str().unwrap(), frame["line"]);
            *leaked.entry(line).or_default() += metric(site, "leaked_bytes");
        }
    }
    let judged: Vec<(&str, u64)> = recorded
        .stdout
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(line, bytes)| (line, bytes.parse().unwrap()))
        .collect();
    assert!(judged.len() >= 12, "{recorded}");
    for (line, bytes) in judged {
        let found = leaked.get(line).copied().unwrap_or(0);
        assert!(found * 100 >= bytes * 95, "{line}: {found} here, {bytes} as Ruby says");
    }
}

/// A program whose peak is caused by one line.
const KEEPS: &str = "\
import json

kept = []

def parse_row(number):
    return {'number': number, 'text': bytes(5000)}

class Store:
    def fill(self, rows):
        for number in range(rows):
            kept.append(parse_row(number))

def main():
    Store().fill(400)
    json.dumps([1, 2, 3])

main()
";

#[test]
fn people_are_shown_the_lines_of_their_script() {
    let workshop = Workshop::new("scripts-shown");
    fs::write(workshop.file("app.py"), KEEPS).unwrap();
    let session = Session::new(workshop.path(), &["/usr/bin/python3", "app.py"]);
    let recorded = session.record().well();
    assert!(recorded.stderr.contains("parse_row (app.py:6)"), "{recorded}");
    let report = |more: &[&str]| {
        let mut mallow = run::mallow();
        mallow.arg("report").arg(session.trace()).args(["--sort", "peak", "--limit", "1"]).args(more);
        run::finish(&mut mallow).well().stdout
    };
    let lines = "\
            parse_row (app.py:6)
            Store.fill (app.py:11)
            main (app.py:14)
            <module> (app.py:17)
";
    assert!(report(&[]).contains(lines), "{}", report(&[]));
    let all = report(&["--all-frames"]);
    assert!(all.contains("<module> (app.py:17)\n            _PyEval_EvalFrameDefault"), "{all}");
    assert!(all.contains("Py_BytesMain"), "{all}");
    let native = report(&["--native"]);
    assert!(!native.contains("(app.py:"), "{native}");
    assert!(native.contains("_PyEval_EvalFrameDefault"), "{native}");
}

/// The same in Ruby.
const KEEPS_IN_RUBY: &str = "\
KEPT = []

def parse_row(number)
  {number: number, text: 'x' * 5000}
end

class Store
  def fill(rows)
    rows.times { |number| KEPT << parse_row(number) }
  end
end

def main
  Store.new.fill(400)
  require 'json'
end

main
";

#[test]
fn people_are_shown_the_lines_of_their_ruby() {
    let workshop = Workshop::new("scripts-ruby-shown");
    fs::write(workshop.file("app.rb"), KEEPS_IN_RUBY).unwrap();
    let session = Session::new(workshop.path(), &["/usr/bin/ruby", "app.rb"]);
    let recorded = session.record().well();
    assert!(recorded.stderr.contains("parse_row (app.rb:4)"), "{recorded}");
    let report = |more: &[&str]| {
        let mut mallow = run::mallow();
        mallow.arg("report").arg(session.trace()).args(["--sort", "peak", "--limit", "1"]).args(more);
        run::finish(&mut mallow).well().stdout
    };
    let lines = "\
            parse_row (app.rb:4)
            block in fill (app.rb:9)
            fill (app.rb:9)
            main (app.rb:14)
            <main> (app.rb:18)
";
    assert!(report(&[]).contains(lines), "{}", report(&[]));
    let all = report(&["--all-frames"]);
    assert!(all.contains("<main> (app.rb:18)\n            rb_vm_exec"), "{all}");
    let native = report(&["--native"]);
    assert!(!native.contains("(app.rb:"), "{native}");
    assert!(native.contains("rb_vm_exec"), "{native}");
}

#[test]
fn other_tools_get_the_lines_of_a_script_too() {
    let workshop = Workshop::new("scripts-exported");
    fs::write(workshop.file("app.py"), KEEPS).unwrap();
    let session = Session::new(workshop.path(), &["/usr/bin/python3", "app.py"]);
    let _ = session.record().well();
    let graph =
        run::finish(run::mallow().arg("flamegraph").arg(session.trace()).arg("--folded")).well().stdout;
    assert!(graph.contains(";<module> app.py;main;Store.fill;parse_row "), "{graph}");
    let speedscope =
        run::finish(run::mallow().arg("export").arg(session.trace()).args(["--format", "speedscope"]));
    let speedscope: Value = serde_json::from_str(&speedscope.well().stdout).unwrap();
    let frames = speedscope["shared"]["frames"].as_array().unwrap();
    let frame = frames.iter().find(|frame| frame["name"] == "parse_row").unwrap();
    assert!(frame["file"].as_str().unwrap().ends_with("/app.py") && frame["line"] == 6, "{frame}");
}

/// One more allocation in a line that others call: the diff names a new line of the script, and no file of the interpreter's.
#[test]
fn a_diff_names_the_line_that_is_new() {
    let workshop = Workshop::new("scripts-diff");
    let record = |name: &str, text: &str| {
        fs::write(workshop.file("app.py"), text).unwrap();
        let trace = workshop.file(name);
        let mut mallow = run::mallow();
        mallow.current_dir(workshop.path()).args(["record", "--force", "-o"]).arg(&trace);
        let _ = run::finish(mallow.args(["--", "/usr/bin/python3", "app.py"])).well();
        trace
    };
    let before = record("before.mallow", KEEPS);
    let more = KEEPS.replace("'text': bytes(5000)", "'text': bytes(5000), 'more': bytes(6000)");
    let after = record("after.mallow", &more);
    let mut mallow = run::mallow();
    let diff = run::finish(mallow.arg("diff").args([&before, &after]).args(["--by", "bytes"])).well().stdout;
    assert!(diff.contains("parse_row (app.py:6)"), "{diff}");
    assert!(!diff.contains("PyBytes"), "{diff}");
}

#[test]
fn a_module_that_only_looks_like_a_runtime_is_said_to_be_unread() {
    let python = "Python (older than 3.8): stacks have no lines of the script, because where this version keeps its frames is not known";
    is_said_of("int PyCode_Type = 1;", python);
    let ruby = "Ruby 2.6: stacks have no lines of the script, because where this version keeps its frames is not known";
    is_said_of("const int ruby_api_version[3] = {2, 6, 0};", ruby);
    // 2.7 on a C library that keeps the words of keys where they are not looked for.
    let ruby = "Ruby 2.7: stacks have no lines of the script, because its build keeps its frames elsewhere than releases do";
    let definition =
        "const int ruby_api_version[3] = {2, 7, 0}; int ruby_thread_has_gvl_p(void) { return 1; }";
    is_said_of_program(definition, "for (int i = 0; i < 20000; i++) free(malloc(100));", ruby);
}

/// A program that loads Ruby while it runs: the location of its thread-local data is not known.
#[test]
fn a_ruby_that_comes_later_is_said_to_be_unread() {
    let work = "void *ruby = dlopen(\"libruby-3.1.so.3.1\", RTLD_NOW); ((void (*)(void))dlsym(ruby, \"ruby_init\"))();";
    let said = "Ruby 3.1: stacks have no lines of the script, because it was loaded when the program ran";
    is_said_of_program("", work, said);
}

/// Compiles a program that contains a definition, and checks the message.
fn is_said_of(definition: &str, said: &str) {
    is_said_of_program(definition, "free(malloc(100));", said);
}

fn is_said_of_program(definition: &str, work: &str, said: &str) {
    let workshop = Workshop::new("scripts-unread");
    let source = format!(
        "#include <dlfcn.h>\n#include <stdlib.h>\n{definition}\nint main(void) {{ {work} return 0; }}\n"
    );
    fs::write(workshop.file("odd.c"), source).unwrap();
    let program = workshop.file("odd");
    let mut gcc = command("gcc");
    let _ = run::finish(gcc.args(["-rdynamic", "-o"]).arg(&program).arg(workshop.file("odd.c"))).well();
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    assert!(recorded.stderr.contains(said), "{recorded}");
    let report = session.report(&[]);
    assert!(metric(&report["totals"], "allocations") > 0);
}
