//! The `mallow` command: arguments, one file per command, exit codes.
//!
//! `mallow-query` answers queries about files, `mallow-collect`, `mallow-check` and `mallow-soak` run programs,
//! `mallow-text` and `mallow-json` write results; this crate only calls them. It must never compute a metric of
//! its own, nor decide what has to be read for an answer.
//!
//! [`args`] parses the command line, [`request`] turns it into requests; `record`, `stat`, `report` and the other commands execute
//! them, each beside its own request. [`terminal`] says how wide text may be.

mod args;
mod bench;
mod busy;
mod check;
mod config;
mod contradictions;
mod cpu;
mod destination;
mod diff;
mod exit_code;
mod export;
mod flamegraph;
mod gc_log;
mod generated;
mod heap;
mod import;
mod interrupts;
mod newest;
#[cfg(feature = "open")]
mod open;
mod opening;
mod output;
mod pager;
mod preload;
mod processes;
mod record;
mod refusal;
mod report;
mod request;
#[cfg(feature = "soak")]
mod soak;
mod sources;
mod stat;
mod symbolize;
mod terminal;
mod version;
mod words;

use mallow_query::Failure;
use refusal::Refusal;
use request::Request;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread::Builder;

/// Called before `main`, and before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = mallow_launch::inherited::take_over;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if mallow_lookup::is_child(&words) {
        mallow_lookup::serve();
    }
    mallow_query::look_up_in_child();
    let code = with_stack(|| run_words(&words));
    mallow_lookup::end();
    code
}

/// Calls on a thread of its own where a shell leaves the first one a small stack (`ulimit -s`), which the parser of arguments alone
/// would overflow.
fn with_stack(run: impl Fn() -> ExitCode + Sync) -> ExitCode {
    const STACK_BYTES: usize = 8 << 20;
    const ENOUGH_BYTES: u64 = 1 << 20;
    if getrlimit(Resource::Stack).current.is_none_or(|bytes| bytes >= ENOUGH_BYTES) {
        return run();
    }
    std::thread::scope(|scope| match Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, &run) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => run(),
    })
}

fn run_words(words: &[OsString]) -> ExitCode {
    let mut args = match args::LowArgs::parse_typed(words) {
        Ok(args) => args,
        Err(error) => {
            // If the reader has closed stdout, help is not needed.
            let _ = error.print();
            return ExitCode::from(args::exit_code_of(&error, words));
        }
    };
    match config::Config::read() {
        Ok(config) => config.fill(&mut args),
        Err(failure) => {
            output::tell(&format!("mallow: {}\n", failure.sentence()));
            return ExitCode::from(args::own_failure_of(words));
        }
    }
    args.width.into_iter().for_each(|columns| terminal::set_width(columns.into()));
    args.color.into_iter().for_each(terminal::set_colour);
    sources::show_from_here();
    mallow_query::look_in(mallow_query::DebugPlaces {
        debug_paths: std::mem::take(&mut args.debug_path),
        sysroot: args.sysroot.take(),
        other_roots: Some(mallow_query::OtherRoots(mallow_files::roots::files_in_other_roots)),
        on_attempt: args.verbose.then_some(mallow_query::OnAttempt(output::tried)),
    });
    if args.quiet {
        output::be_quiet();
    }
    busy::heed(&args.command);
    if args.no_pager {
        pager::turn_off();
    }
    if args.open_files {
        mallow_query::open_what_traces_name();
    }
    let sound = contradictions::refuse(&args.command).and_then(|()| newest::name_files(&mut args.command));
    let own_failure = |failure| Refusal { failure, code: args::own_failure_of(words) };
    sound
        .map_err(Refusal::of_input)
        .and_then(|()| processes::refuse_others(&args.command).map_err(own_failure))
        .and_then(|()| run(Request::from(args)))
        .map(ExitCode::from)
        .unwrap_or_else(|refusal| {
            output::tell(&format!("mallow: {}\n", refusal.failure.sentence()));
            ExitCode::from(refusal.code)
        })
}

/// Executes a request. Only commands that pass on a program's status have separate codes for their own failures.
fn run(request: Request) -> Result<u8, Refusal> {
    let plain = |done: Result<u8, Failure>| done.map_err(Refusal::of_input);
    match request {
        Request::Record(record) => record::run(record),
        Request::Stat(stat) => stat::run(stat),
        Request::Cpu(cpu) => cpu::run(&cpu),
        Request::Report(report) => plain(report::run(&report)),
        Request::Diff(diff) => plain(diff::run(&diff)),
        Request::Flamegraph(flamegraph) => plain(flamegraph::run(&flamegraph)),
        Request::Import(import) => plain(import::run(&import)),
        Request::Check(check) => plain(check::run(&check)),
        Request::Export(export) => plain(export::run(&export)),
        #[cfg(feature = "soak")]
        Request::Soak(soak) => plain(soak::run(&soak)),
        Request::Bench(bench) => plain(bench::run(&bench)),
        Request::GcLog(log) => plain(gc_log::run(&log)),
        Request::Heap(heap) => heap::run(&heap),
        #[cfg(feature = "open")]
        Request::Open(open) => plain(open::run(*open)),
        Request::Symbolize(symbolize) => plain(symbolize::run(&symbolize)),
        Request::Version(wanted) => plain(version::run(&wanted)),
        Request::Config(wanted) => plain(config::run(&wanted)),
        Request::Completions(wanted) => plain(generated::completions(&wanted)),
        Request::ManPages(wanted) => plain(generated::man_pages(&wanted)),
    }
}
