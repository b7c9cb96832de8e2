//! The `mallow` command: arguments, one file per command, exit codes.
//!
//! What is measured, folded and named is decided in other crates; here it is only asked for and written out. This crate
//! must never compute a metric of its own.
//!
//! [`args`] is what was typed, [`request`] what it means; `record`, `stat` and `report` do it; `mallow-text` and `mallow-json`
//! are how results look.

mod args;
mod check;
mod diff;
mod exit_code;
mod export;
mod flamegraph;
mod gc_log;
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
        Request::Report(report) => report::run(&report),
        Request::Diff(diff) => diff::run(&diff),
        Request::Flamegraph(flamegraph) => flamegraph::run(&flamegraph),
        Request::Import(import) => import::run(&import),
        Request::Check(check) => check::run(&check),
        Request::Export(export) => export::run(&export),
        #[cfg(feature = "soak")]
        Request::Soak(soak) => soak::run(&soak),
        Request::GcLog(log) => gc_log::run(&log),
    };
    result.map(ExitCode::from).unwrap_or_else(|failure| {
        output::tell(&format!("mallow: {}\n", failure.sentence()));
        ExitCode::from(exit_code::BAD_INPUT)
    })
}
