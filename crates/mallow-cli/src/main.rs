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
mod check;
mod cpu;
mod diff;
mod exit_code;
mod export;
mod flamegraph;
mod gc_log;
mod generated;
mod heap;
mod import;
mod newest;
mod output;
mod pager;
mod preload;
mod record;
mod refusal;
mod report;
mod request;
#[cfg(feature = "soak")]
mod soak;
mod stat;
mod terminal;
mod version;
mod words;

use mallow_query::Failure;
use refusal::Refusal;
use request::Request;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut args = match args::LowArgs::parse_typed(&words) {
        Ok(args) => args,
        Err(error) => {
            // A reader that has gone needs no help.
            let _ = error.print();
            return ExitCode::from(args::exit_code_of(&error, &words));
        }
    };
    args.width.into_iter().for_each(|columns| terminal::set_width(columns.into()));
    terminal::set_colour(args.color);
    if args.no_pager {
        pager::turn_off();
    }
    let named = newest::name_files(&mut args.command).map_err(Refusal::of_input);
    named.and_then(|()| run(Request::from(args))).map(ExitCode::from).unwrap_or_else(|refusal| {
        output::tell(&format!("mallow: {}\n", refusal.failure.sentence()));
        ExitCode::from(refusal.code)
    })
}

/// Does it. Only commands that pass a program's status on have codes of their own for what they cannot do.
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
        Request::Version(wanted) => plain(version::run(&wanted)),
        Request::Completions(wanted) => plain(generated::completions(&wanted)),
        Request::ManPages(wanted) => plain(generated::man_pages(&wanted)),
    }
}
