//! The `mallow` command: arguments, one file per command, exit codes.
//!
//! What is asked of files is answered by `mallow-query`, what runs is run by `mallow-collect`, `mallow-check` and `mallow-soak`, and
//! results are written by `mallow-text` and `mallow-json`; here it is only asked for. This crate must never compute a metric of
//! its own, nor decide what has to be read for an answer.
//!
//! [`args`] is what was typed, [`request`] what it means; `record`, `stat`, `report` and their like do it, each beside its own
//! request. [`terminal`] says how wide text may be.

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
mod output;
mod preload;
mod record;
mod report;
mod request;
#[cfg(feature = "soak")]
mod soak;
mod stat;
mod terminal;
mod words;

use request::Request;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::LowArgs::parse_typed(std::env::args_os()).unwrap_or_else(|error| error.exit());
    args.width.into_iter().for_each(|columns| terminal::set_width(columns.into()));
    let result = match Request::from(args) {
        Request::Record(record) => record::run(record),
        Request::Stat(stat) => stat::run(stat),
        Request::Cpu(cpu) => cpu::run(&cpu),
        Request::Report(report) => report::run(&report),
        Request::Diff(diff) => diff::run(&diff),
        Request::Flamegraph(flamegraph) => flamegraph::run(&flamegraph),
        Request::Import(import) => import::run(&import),
        Request::Check(check) => check::run(&check),
        Request::Export(export) => export::run(&export),
        #[cfg(feature = "soak")]
        Request::Soak(soak) => soak::run(&soak),
        Request::Bench(bench) => bench::run(&bench),
        Request::GcLog(log) => gc_log::run(&log),
        Request::Heap(heap) => heap::run(&heap),
        Request::Completions(wanted) => generated::completions(&wanted),
        Request::ManPages(wanted) => generated::man_pages(&wanted),
    };
    result.map(ExitCode::from).unwrap_or_else(|failure| {
        output::tell(&format!("mallow: {}\n", failure.sentence()));
        ExitCode::from(exit_code::BAD_INPUT)
    })
}
