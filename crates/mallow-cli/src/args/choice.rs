//! Words that stand for values of other crates, which know no command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mallow_formats::export::ExportFormat;
use mallow_profile::ReallocAttribution;
use mallow_view::{Direction, Measure, SortKey};

/// One of `all` by its word. `help` says in `--help` what it is; an empty text says nothing.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
    help: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|value| match help(*value) {
        "" => PossibleValue::new(word(*value)),
        help => PossibleValue::new(word(*value)).help(help),
    });
    PossibleValuesParser::new(values).try_map(move |typed| {
        let mut found = all.iter().copied();
        found.find(|value| word(*value).eq_ignore_ascii_case(&typed)).ok_or("it is no such word")
    })
}

/// What sites of a report can be sorted by.
pub(super) fn sort_key() -> impl TypedValueParser<Value = SortKey> {
    one_of(&SortKey::ALL, SortKey::word, explained)
}

/// The measures.
pub(super) fn measure() -> impl TypedValueParser<Value = Measure> {
    one_of(&Measure::ALL, Measure::word, |measure| explained(measure.into()))
}

/// Which way a tree grows.
pub(super) fn direction() -> impl TypedValueParser<Value = Direction> {
    one_of(&Direction::ALL, Direction::word, |direction| match direction {
        Direction::Callers => "From the allocation outwards",
        Direction::Callees => "From the program's start inwards",
    })
}

/// Where `realloc`'s blocks count.
pub(super) fn attribution() -> impl TypedValueParser<Value = ReallocAttribution> {
    let word = |attribution| match attribution {
        ReallocAttribution::OwnSite => "own",
        ReallocAttribution::Origin => "origin",
    };
    one_of(
        &[ReallocAttribution::OwnSite, ReallocAttribution::Origin],
        word,
        |attribution| match attribution {
            ReallocAttribution::OwnSite => "Where realloc was called",
            ReallocAttribution::Origin => "Where the block was first allocated, as valgrind's DHAT counts",
        },
    )
}

/// What is written.
pub(super) fn export_format() -> impl TypedValueParser<Value = ExportFormat> {
    one_of(&ExportFormat::ALL, ExportFormat::word, |_| "")
}

fn explained(key: SortKey) -> &'static str {
    match key {
        SortKey::Measure(Measure::Allocations) => "Calls that allocated",
        SortKey::Measure(Measure::Bytes) => "Bytes they asked for",
        SortKey::Measure(Measure::Peak) => "Bytes live when the process held most",
        SortKey::Measure(Measure::Leaked) => "Bytes live at the end",
        SortKey::Measure(Measure::Temporary) => "Blocks freed before their thread allocated again",
        SortKey::Reallocations => "Allocations made by realloc",
        SortKey::PeakBlocks => "Blocks live when the process held most",
        SortKey::LeakedBlocks => "Blocks live at the end",
        SortKey::Max => "The site's own maximum of live bytes",
        SortKey::MaxBlocks => "The site's live blocks at that moment",
        SortKey::Size => "Average size of a block",
        SortKey::Lifetime => "Average time that a block lived",
        SortKey::Rate => "Allocations per second",
    }
}
