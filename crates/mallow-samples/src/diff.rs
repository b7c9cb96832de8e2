//! Two builds of a program, and their diff.

use mallow_base::Frame;
use mallow_profile::{
    Address, Availability, Process, ProcessIndex, Profile, ProfileBuilder, Recording, SiteTotals, StackId,
    Totals,
};
use mallow_view::diff::{Comparison, DiffInput, DiffOptions, DiffReport, Limit, Verdict};
use std::num::NonZeroU64;
use std::path::Path;

/// A stack, leaf first, of `function@file:line` in blanks; allocations; bytes of each; whether they leak.
pub type Made<'a> = (&'a str, u64, u64, bool);

/// A profile of stacks.
pub fn profile(command: &str, known: Availability, sites: &[Made<'_>]) -> Profile {
    let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let mut builder = ProfileBuilder::new(Recording { command, ..Recording::default() }, known);
    let process = builder.add_process(Process::default());
    for (stack, allocations, size, leaks) in sites {
        let stack = stack_of(&mut builder, stack);
        add(&mut builder, process, stack, *allocations, allocations * size, *leaks);
    }
    builder.finish()
}

fn stack_of(builder: &mut ProfileBuilder, stack: &str) -> Option<StackId> {
    let frames: Vec<Frame> = stack
        .split(' ')
        .map(|text| {
            let (function, place) = text.split_once('@').unwrap_or((text, "app.c"));
            let (file, line) = place.split_once(':').unwrap_or((place, ""));
            Frame {
                function: function.into(),
                file: Some(format!("/src/{file}")),
                line: line.parse().ok(),
                ..Frame::default()
            }
        })
        .collect();
    let locations: Vec<_> =
        frames.into_iter().rev().map(|frame| builder.location(Address::Unknown, vec![frame])).collect();
    builder.stack(locations)
}

fn add(
    builder: &mut ProfileBuilder,
    process: ProcessIndex,
    stack: Option<StackId>,
    allocations: u64,
    bytes: u64,
    leaks: bool,
) {
    let leaked = if leaks { (bytes, allocations) } else { (0, 0) };
    let totals = SiteTotals {
        allocations,
        bytes,
        peak_bytes: bytes,
        peak_blocks: allocations,
        leaked_bytes: leaked.0,
        leaked_blocks: leaked.1,
        ..SiteTotals::default()
    };
    builder.add_site(process, stack, &totals);
    builder.process(process).totals.add(&Totals {
        allocations,
        bytes,
        peak_bytes: bytes,
        peak_blocks: allocations,
        leaked_bytes: leaked.0,
        leaked_blocks: leaked.1,
        ..Totals::default()
    });
}

/// A table that reads its rows; the one after has a log, no cache, larger rows, and `load` is called `read` now.
pub fn tables() -> [Profile; 2] {
    let deep: Vec<String> =
        (0..12).map(|level| format!("level_{level}@/usr/include/deep.c:{level}")).collect();
    let deep = deep.join(" ");
    let before = [
        ("row@table.c:4 load@table.c:9 main@main.c:3", 37_449, 48, true),
        ("strdup@string.c:4 load@table.c:10 main@main.c:3", 112_347, 16, false),
        ("cache@cache.c:8 main@main.c:4", 100, 1024, false),
        (&deep, 7, 8, false),
        ("print@print.c:5 main@main.c:9", 3, 4096, false),
    ];
    let after = [
        ("row@table.c:14 read@table.c:19 main@main.c:3", 37_449, 64, true),
        ("strdup@string.c:4 read@table.c:20 main@main.c:3", 112_347, 16, false),
        ("log@log.c:8 row@table.c:15 read@table.c:19 main@main.c:3", 37_449, 32, false),
        (&deep, 8, 8, false),
        ("print@print.c:5 main@main.c:9", 3, 4096, false),
    ];
    let command = "./table --rows 37449 a-file-with-quite-a-long-name-that-does-not-fit-at-all.csv";
    [profile(command, Availability::ALL, &before), profile(command, Availability::ALL, &after)]
}

/// What a diff is asked for.
pub struct Asked {
    /// What to compare.
    pub options: DiffOptions,
    /// Operations to divide by.
    pub per: NonZeroU64,
    /// Sites of a section.
    pub limit: Option<usize>,
    /// Limits.
    pub fail_on: Vec<Limit>,
}

/// No more than a comparison.
pub fn asked(options: DiffOptions) -> Asked {
    Asked { options, per: NonZeroU64::MIN, limit: None, fail_on: Vec::new() }
}

/// Does something with the diff of two profiles.
pub fn with_report<T>(
    [before, after]: &[Profile; 2],
    asked: &Asked,
    show: impl FnOnce(&DiffReport<'_>) -> T,
) -> T {
    let Asked { options, per, limit, fail_on } = asked;
    let comparison = Comparison::of(before, after, options);
    let verdicts: Vec<Verdict> = fail_on.iter().filter_map(|limit| limit.judge(&comparison, *per)).collect();
    let warnings = ["w".to_owned()];
    let side =
        |file, profile| DiffInput { file: Path::new(file), profile, complete: true, warnings: &warnings };
    let sides = [side("runs/before.mallow", before), side("runs/after.mallow", after)];
    let (per, limit) = (*per, *limit);
    show(&DiffReport {
        sides,
        options,
        per,
        limit,
        comparison: &comparison,
        verdicts: &verdicts,
        shares: &[],
    })
}
