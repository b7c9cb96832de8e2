//! One hazard program through `record`, `report` and `stat`, held against the metrics that stand beside it.

use crate::Workshop;
use crate::expected::{self, Differences};
use crate::program::{Program, string};
use crate::run::{self, Exit, Finished};
use crate::session::Session;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A user that owns nothing and is not who runs the tests.
const NOBODY: u32 = 65_534;

/// Declares the test of `programs/hazards/NAME`.
#[macro_export]
macro_rules! hazard {
    ($name:ident) => {
        #[test]
        fn $name() {
            $crate::hazard::check(stringify!($name));
        }
    };
}

/// Builds and runs a hazard program in all its variants.
///
/// # Panics
/// When a metric is not as stated, with every difference and the commands to repeat the run.
pub fn check(name: &str) {
    let program = Program::load(name);
    match program.stated["refusal"].as_str() {
        Some(reason) => check_refusal(&program, reason),
        None => check_metrics(&program),
    }
}

/// The same with an allocator linked into the program: its archive, and what that needs. Some bring libraries that allocate themselves;
/// then the figures of whole processes are left out, and those of the program's own functions held against what is stated.
///
/// # Panics
/// As [`check`].
pub fn check_linked(name: &str, allocator: &str, libs: &[&str], only_sites: bool) {
    check_variant(name, &json!({"name": format!("-{allocator}"), "libs": libs}), only_sites);
}

/// The same as a static executable, which a compiler builds with these flags.
///
/// # Panics
/// As [`check`].
pub fn check_static(name: &str, compiler: &str, flags: &[&str], only_sites: bool) {
    let variant =
        json!({"name": format!("-{compiler}{}", flags.concat()), "libs": flags, "compiler": compiler});
    check_variant(name, &variant, only_sites);
}

fn check_variant(name: &str, variant: &Value, only_sites: bool) {
    let mut program = Program::load(name);
    if only_sites {
        assert!(program.stated["sites"].is_array(), "nothing would be checked");
        for process in program.stated["processes"].as_array_mut().into_iter().flatten() {
            process["totals"] = json!({});
        }
        program.stated["expect_from_stdout"] = Value::Null;
    }
    if let Some(compiler) = variant["compiler"].as_str() {
        let is_cxx = program.stated["build"][0].as_str().is_some_and(|compiler| compiler.ends_with("++"));
        program.stated["build"][0] = json!(if is_cxx { "c++" } else { compiler });
    }
    check_variants(&program, std::slice::from_ref(variant));
}

fn check_metrics(program: &Program) {
    let plain = [json!({"name": ""})];
    check_variants(program, program.stated["variants"].as_array().map_or(&plain[..], Vec::as_slice));
}

fn check_variants(program: &Program, variants: &[Value]) {
    let mut failures = Vec::new();
    for variant in variants {
        let workshop = Workshop::new(&format!("{}{}", program.name, string(&variant["name"])));
        let path = program.build(workshop.path(), &variant["libs"]);
        let mut session = session_of(program, &path);
        if let Some(library) = variant["preload"].as_str() {
            session = session.env("LD_PRELOAD", library);
        }
        let differences = observed(program, &session, &path);
        if !differences.is_empty() {
            let folder = workshop.keep();
            failures.push(format!(
                "{} {} ({} differences; built in {})\n  {}",
                program.name,
                variant["name"],
                differences.len(),
                folder.display(),
                differences.join("\n  ")
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn session_of(program: &Program, path: &Path) -> Session {
    let words = program.words(path);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let session = Session::new(path.parent().unwrap_or(Path::new("/")), &words);
    program.env(path).iter().fold(session, |session, (name, value)| session.env(name, value))
}

/// Runs the program bare, recorded and counted, and says what is not as stated.
fn observed(program: &Program, session: &Session, path: &Path) -> Differences {
    let stated = &program.stated;
    let own = path.parent().unwrap_or(Path::new("/"));
    let bare = session.bare();
    let mut differences = Vec::new();

    let flags = stated["flags"].as_array().map_or(&[][..], Vec::as_slice);
    let flags: Vec<&str> = flags.iter().filter_map(Value::as_str).collect();
    let recorded = session.record_with(&flags);
    of_run("record", &recorded, &bare, stated, &mut differences);
    let repeat = format!("repeat with: {}", recorded.line);
    if recorded.exit == Exit::Status(2) && bare.exit != Exit::Status(2) {
        return vec![repeat, recorded.stderr];
    }
    let report = session.report(&[]);
    if report["complete"] != stated["warnings"].is_null() {
        differences.push(format!("record: complete is {}: {}", report["complete"], report["warnings"]));
    }
    if report["early_ends"][0]["allocations"] != stated["early_ends"] {
        differences.push(format!("stacks end early: {}", report["early_ends"]));
    }
    let processes = processes(stated, &recorded);
    differences.extend(expected::of_processes(&report, &processes, program, path));
    let sites = stated["sites"].as_array().map_or(&[][..], Vec::as_slice);
    differences.extend(expected::of_sites(&report, sites, own));
    if let Some(requests) = stated["requests"].as_object() {
        // The program's own: a C library that is linked in makes requests at its start.
        let found = session.report(&["--filter", &format!("file~^{}\\.", program.name)]);
        for (name, wanted) in requests {
            expected::of_metrics(name, wanted, &found["requests"][name], &mut differences);
        }
    }

    let mut without_flags = stated.clone();
    if !flags.is_empty() {
        without_flags["processes"] = stated["without_flags"].clone();
        of_run("record without flags", &session.record(), &bare, stated, &mut differences);
        let processes = self::processes(&without_flags, &recorded);
        let found = expected::of_processes(&session.report(&[]), &processes, program, path);
        differences.extend(found.into_iter().map(|difference| format!("without flags: {difference}")));
    }

    let (counted, stat) = session.stat();
    of_run("stat", &counted, &bare, stated, &mut differences);
    let processes = self::processes(&without_flags, &counted);
    let in_stat = expected::of_processes(&stat["runs"][0], &processes, program, path);
    differences.extend(in_stat.into_iter().map(|difference| format!("stat: {difference}")));
    if !differences.is_empty() {
        differences.push(repeat);
        differences.push(format!("and:         {}", counted.line));
    }
    differences
}

/// mallow passes on the program's exit status, and leaves its stdout alone.
fn of_run(name: &str, run: &Finished, bare: &Finished, stated: &Value, differences: &mut Differences) {
    let wanted = match stated["exit"]["signal"].as_i64() {
        Some(signal) => 128 + signal,
        None => stated["exit"].as_i64().unwrap_or(0),
    };
    if run.exit != Exit::Status(wanted as i32) {
        differences.push(format!("{name}: expected exit status {wanted}, found {:?}", run.exit));
    }
    for part in stated["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !run.stderr.contains(part) {
            differences.push(format!("{name}: expected a warning with '{part}', found {:?}", run.stderr));
        }
    }
    if stated["expect_from_stdout"] != true && run.stdout != bare.stdout {
        differences.push(format!("{name}: stdout is {:?}, without mallow {:?}", run.stdout, bare.stdout));
    }
}

/// The stated processes; with `expect_from_stdout`, the first one's totals have what the run printed.
fn processes(stated: &Value, run: &Finished) -> Vec<Value> {
    let mut processes = stated["processes"].as_array().cloned().unwrap_or_default();
    if stated["expect_from_stdout"] == true {
        let mut printed = 0;
        for line in run.stdout.lines() {
            if let Some((name, value)) = line.split_once(' ')
                && let Ok(value) = value.parse::<u64>()
            {
                processes[0]["totals"][name] = json!(value);
                printed += 1;
            }
        }
        assert!(printed > 0, "the program printed no numbers\n{run}");
    }
    processes
}

/// The run is refused before it starts: one sentence with the reason, the exit code of mallow's own failures, nothing left behind.
fn check_refusal(program: &Program, reason: &str) {
    let workshop = Workshop::new(&program.name);
    let built = program.build(workshop.path(), &Value::Null);
    let path = match program.stated["mode"].as_str() {
        Some(mode) => privileged(&built, mode),
        None => built,
    };
    let session = session_of(program, &path);
    let before = workshop.names();
    for refused in [session.record(), refused_stat(&session)] {
        let refused = refused.ended(Exit::Status(125));
        assert_eq!(refused.stdout, "", "the program ran\n{refused}");
        let is_sentence = refused.stderr.starts_with("mallow: ") && refused.stderr.lines().count() == 1;
        assert!(is_sentence && refused.stderr.contains(reason), "no reason `{reason}` is named\n{refused}");
        assert_eq!(workshop.names(), before, "something was left behind\n{refused}");
    }
}

fn refused_stat(session: &Session) -> Finished {
    session.under(run::mallow(), &["stat", "--"])
}

/// A copy with `mode` that belongs to somebody else. Only root can give files away; everybody else takes the system's
/// own setuid program, which is never started here.
fn privileged(built: &Path, mode: &str) -> PathBuf {
    let copy = built.with_extension("copy");
    std::fs::copy(built, &copy).expect("the test's folder takes a copy");
    if chown(&copy, Some(NOBODY), None).is_err() {
        return PathBuf::from("/usr/bin/passwd");
    }
    let mode = u32::from_str_radix(mode, 8).expect("`mode` is octal");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(mode)).expect("a mode can be set");
    copy
}
