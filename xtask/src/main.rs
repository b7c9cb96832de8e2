//! The project's own commands: `cargo xtask ci` and each of its steps alone.
//!
//! Everything that has to hold before a change goes in is a step here, so that a developer's machine and the
//! CI server run the same thing. It must never pass by skipping: a step that cannot do its work fails. Every error here is a
//! sentence for people, with the cause and, where there is one, the cure.

mod bench;
mod beside;
mod dist;
mod fuzz;
mod interpreters;
mod long;
mod miri;
mod oracles;
mod packages;
mod pictures;
mod quick;
mod recorder;
mod run;
mod site;
mod slim;
mod soak_record;
mod steps;
mod testing;
mod tidy;
mod wasm;
mod workspaces;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask COMMAND

  ci                     every step below, in this order; stops at the first that fails
  packages               install what the tests need from Debian's packages, npm and PyPI
  fmt [--fix]            formatting of every workspace
  tidy                   the project's own rules: arrows, headings, lengths, names, licences
  clippy                 lints of every workspace, warnings as errors
  recorder               what the library that enters other programs asks for and offers
  test                   every test
  miri                   the recorder's unit tests under Miri, which a nightly compiler brings
  slim                   mallow without `mallow soak`, and as it is handed out, builds without a warning
  wasm                   the rows of every front end build where there are no processes, sockets and files
  doc                    the documentation, warnings as errors
  fuzz [--seconds N] [--output FOLDER] [TARGET…]
                         fuzz the parsers, 60 seconds each unless told otherwise; inputs are added up in FOLDER/fuzz.csv

  test CRATE|FILE [NAME…]
                         the tests of a crate, or those that belong to a file
  quick                  within a minute: fmt, tidy, clippy and tests of what differs from main
  long [--runs N] [--seconds N] [--only tests|dist|miri|doc|fuzz|soaks]…
                         hours: every test over the release binary, a minute for each fuzz target, 20 soaks of each
                         server; goes on where it was interrupted, and is written to bench/record/
  dist [--output FOLDER] the static program and every package that holds it, into target/packages; minutes
  dist --try [WAY]…      install each package in a clean root, record, report, remove; needs root
  dist --twice           two builds in two folders give the same bytes
  interpreters           Pythons and Rubies of Debian's other releases, into target/interpreters, for the tests of scripts; needs root
  pictures               the pictures of the terminal in docs/images, drawn again from real runs
  site                   the guide as a site of static pages, its links checked, into target/site/html
  bench [--only NAME]… [--rounds N] [--quick] [--mallow FILE] [--output FOLDER]
                         what recording costs, against heaptrack; a complete run is written to bench/record/
  soak-record [--runs N] [--jobs N] [--only SERVER/MODE]… [--output FILE]
                         verdicts of mallow soak on servers whose truth is known; 20 runs each, into bench/record/
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(sentence)) => {
            eprintln!("{sentence}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Failure::Step(sentence)) => {
            eprintln!("\nxtask: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Why a command did not end well.
enum Failure {
    /// It was asked for something that does not exist.
    Usage(String),
    /// A step found a fault.
    Step(String),
}

impl From<String> for Failure {
    fn from(sentence: String) -> Self {
        Failure::Step(sentence)
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((command, rest)) = words.split_first() else {
        return Err(Failure::Usage("A command is needed.".to_owned()));
    };
    if matches!(*command, "help" | "--help" | "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let root = repository_root()?;
    match (*command, rest) {
        ("ci", []) => Ok(steps::ci(&root)?),
        ("fmt", ["--fix"]) => Ok(steps::format_in_place(&root)?),
        ("fuzz", options) => {
            let plan = fuzz::Plan::parse(options).map_err(Failure::Usage)?;
            Ok(steps::timed("fuzz", || fuzz::run(&root, &plan))?)
        }
        ("bench", options) => {
            let plan = bench::Plan::parse(options).map_err(Failure::Usage)?;
            Ok(steps::timed("bench", || bench::run(&root, &plan))?)
        }
        ("dist", options) => {
            let plan = dist::Plan::parse(options).map_err(Failure::Usage)?;
            Ok(steps::timed("dist", || dist::run(&root, &plan))?)
        }
        ("test", [word, names @ ..]) => {
            let choice = testing::Choice::parse(&root, word, names).map_err(Failure::Usage)?;
            Ok(steps::timed("test", || testing::chosen(&root, &[choice]))?)
        }
        ("interpreters", []) => Ok(steps::timed("interpreters", || interpreters::run(&root))?),
        ("pictures", []) => Ok(steps::timed("pictures", || pictures::run(&root))?),
        ("site", []) => Ok(steps::timed("site", || site::run(&root))?),
        ("quick", []) => Ok(quick::run(&root)?),
        ("long", options) => {
            let plan = long::Plan::parse(options).map_err(Failure::Usage)?;
            Ok(long::run(&root, &plan)?)
        }
        ("soak-record", options) => Ok(steps::timed("soak-record", || soak_record::run(&root, options))?),
        (name, []) => match steps::STEPS.iter().find(|step| step.name == name) {
            Some(step) => Ok(steps::timed(step.name, || (step.body)(&root))?),
            None => Err(Failure::Usage(format!("There is no command `{name}`."))),
        },
        (name, extra) => Err(Failure::Usage(format!("`{name}` does not understand `{}`.", extra.join(" ")))),
    }
}

/// The checkout that holds this program's sources. Cargo says where they are when it runs us; the program
/// started by hand asks git.
fn repository_root() -> Result<PathBuf, String> {
    if let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR")
        && let Some(root) = PathBuf::from(manifest).parent()
    {
        return Ok(root.to_owned());
    }
    let top = run::captured(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
    Ok(PathBuf::from(top.trim_end()))
}
