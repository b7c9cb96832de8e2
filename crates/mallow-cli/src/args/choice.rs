//! Words for values of other crates, which know no command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mallow_cpu::CpuMetric;
use mallow_formats::export::ExportFormat;
use mallow_profile::ReallocAttribution;
use mallow_view::{Direction, FunctionOrder, Measure, SortKey};

/// Parses one of `all` by its word. `help` returns its description in `--help`; an empty text means none.
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

/// The sort keys of a report, whatever its profile counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnySort {
    /// Of a heap profile.
    Heap(SortKey),
    /// Of a CPU profile: stacks by a metric.
    Cpu(CpuMetric),
    /// Of a CPU profile: functions.
    Functions(FunctionOrder),
}

/// A metric, whatever is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnyMeasure {
    /// Of a heap profile.
    Heap(Measure),
    /// Of a CPU profile.
    Cpu(CpuMetric),
}

impl AnySort {
    pub(crate) fn word(self) -> &'static str {
        match self {
            AnySort::Heap(key) => key.word(),
            AnySort::Cpu(metric) => metric.word(),
            AnySort::Functions(order) => order.word(),
        }
    }
}

impl AnyMeasure {
    pub(crate) fn word(self) -> &'static str {
        match self {
            AnyMeasure::Heap(measure) => measure.word(),
            AnyMeasure::Cpu(metric) => metric.word(),
        }
    }
}

/// Returns the parser of a report's sort keys.
pub(super) fn sort_key() -> impl TypedValueParser<Value = AnySort> {
    const HEAP: usize = SortKey::ALL.len();
    const CPU: usize = CpuMetric::ALL.len();
    const ALL: [AnySort; HEAP + 2 + CPU] = {
        let mut all = [AnySort::Functions(FunctionOrder::Own); HEAP + 2 + CPU];
        let mut at = 0;
        while at < HEAP {
            all[at] = AnySort::Heap(SortKey::ALL[at]);
            at += 1;
        }
        all[HEAP + 1] = AnySort::Functions(FunctionOrder::Under);
        let mut at = 0;
        while at < CPU {
            all[HEAP + 2 + at] = AnySort::Cpu(CpuMetric::ALL[at]);
            at += 1;
        }
        all
    };
    one_of(&ALL, AnySort::word, |sort| match sort {
        AnySort::Heap(key) => explained(key),
        AnySort::Cpu(metric) => explained_of_cpu(metric),
        AnySort::Functions(FunctionOrder::Own) => "mallow cpu: functions by what they took themselves",
        AnySort::Functions(FunctionOrder::Under) => {
            "mallow cpu: functions by what they took with their callees"
        }
    })
}

/// Returns the parser of measures.
pub(super) fn measure() -> impl TypedValueParser<Value = AnyMeasure> {
    const HEAP: usize = Measure::ALL.len();
    const CPU: usize = CpuMetric::ALL.len();
    const ALL: [AnyMeasure; HEAP + CPU] = {
        let mut all = [AnyMeasure::Cpu(CpuMetric::Time); HEAP + CPU];
        let mut at = 0;
        while at < HEAP {
            all[at] = AnyMeasure::Heap(Measure::ALL[at]);
            at += 1;
        }
        let mut at = 0;
        while at < CPU {
            all[HEAP + at] = AnyMeasure::Cpu(CpuMetric::ALL[at]);
            at += 1;
        }
        all
    };
    one_of(&ALL, AnyMeasure::word, |measure| match measure {
        AnyMeasure::Heap(measure) => explained(measure.into()),
        AnyMeasure::Cpu(metric) => explained_of_cpu(metric),
    })
}

fn explained_of_cpu(metric: CpuMetric) -> &'static str {
    match metric {
        CpuMetric::Time => "mallow cpu: time on processors",
        CpuMetric::Samples => "mallow cpu: samples",
        CpuMetric::Events => "mallow cpu: events of hardware, such as cycles",
        CpuMetric::OffCpu => "mallow cpu: time off the processors",
        CpuMetric::Blocked => "mallow cpu: the part of that in which something was waited for",
        CpuMetric::Switches => "mallow cpu: how often a processor was given up",
    }
}

/// Returns the parser of a tree's direction.
pub(super) fn direction() -> impl TypedValueParser<Value = Direction> {
    one_of(&Direction::ALL, Direction::word, |direction| match direction {
        Direction::Callers => "From the allocation outwards",
        Direction::Callees => "From the program's start inwards",
    })
}

/// Returns the parser of the sort keys of functions.
pub(super) fn function_order() -> impl TypedValueParser<Value = FunctionOrder> {
    one_of(&FunctionOrder::ALL, FunctionOrder::word, |order| match order {
        FunctionOrder::Own => "By what they took or allocated themselves",
        FunctionOrder::Under => "By what they and all that they called did",
    })
}

/// Returns the parser of the attribution of `realloc`'s blocks.
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

/// Returns the parser of export formats.
pub(super) fn export_format() -> impl TypedValueParser<Value = ExportFormat> {
    let value = |format: &ExportFormat| match format {
        // inferno, samply and memray call it so.
        ExportFormat::Folded => PossibleValue::new(format.word()).alias(COLLAPSED),
        format => PossibleValue::new(format.word()),
    };
    PossibleValuesParser::new(ExportFormat::ALL.iter().map(value)).try_map(|typed| {
        let word = if typed.eq_ignore_ascii_case(COLLAPSED) { ExportFormat::Folded.word() } else { &typed };
        let mut all = ExportFormat::ALL.into_iter();
        all.find(|format| format.word().eq_ignore_ascii_case(word)).ok_or("it is no such word")
    })
}

/// Another word for folded stacks.
const COLLAPSED: &str = "collapsed";

fn explained(key: SortKey) -> &'static str {
    match key {
        SortKey::Measure(Measure::Allocations) => "Calls that allocated",
        SortKey::Measure(Measure::Bytes) => "Requested bytes",
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
        SortKey::Reads => "DHAT: bytes read from the blocks",
        SortKey::Writes => "DHAT: bytes written into the blocks",
        SortKey::Unused => "DHAT: bytes at sites whose blocks were never read, or never written",
    }
}
