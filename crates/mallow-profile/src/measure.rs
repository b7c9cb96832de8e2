//! The heap's metrics: the five by which sites are compared.

use crate::{Availability, SiteTotals, Totals};
use mallow_base::words;
use mallow_stacks::{Metric, Unit, Weights};

/// A metric to sort sites by. The counting rules define each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Successful allocating calls.
    Allocations,
    /// Their requested bytes.
    Bytes,
    /// Live bytes at the moment when the process held most.
    Peak,
    /// Bytes live at the end.
    Leaked,
    /// Blocks freed by their own thread before it allocated again.
    Temporary,
}

words! {
    Measure {
        Allocations = "allocations",
        Bytes = "bytes",
        Peak = "peak",
        Leaked = "leaked",
        Temporary = "temporary",
    }
}

impl Measure {
    /// Returns what it counts, in the middle of a sentence.
    pub fn subject(self) -> &'static str {
        match self {
            Measure::Allocations => "allocations",
            Measure::Bytes => "bytes allocated",
            Measure::Peak => "bytes live at the peak",
            Measure::Leaked => "bytes live at the end",
            Measure::Temporary => "temporary allocations",
        }
    }

    /// Returns whether it counts bytes; else it counts calls or blocks.
    pub fn is_bytes(self) -> bool {
        matches!(self, Measure::Bytes | Measure::Peak | Measure::Leaked)
    }

    /// The metric of a site.
    pub fn of_site(self, totals: &SiteTotals) -> u64 {
        match self {
            Measure::Allocations => totals.allocations,
            Measure::Bytes => totals.bytes,
            Measure::Peak => totals.peak_bytes,
            Measure::Leaked => totals.leaked_bytes,
            Measure::Temporary => totals.temporary,
        }
    }

    /// The metric of a process or of a recording.
    pub fn of_totals(self, totals: &Totals) -> u64 {
        match self {
            Measure::Allocations => totals.allocations,
            Measure::Bytes => totals.bytes,
            Measure::Peak => totals.peak_bytes,
            Measure::Leaked => totals.leaked_bytes,
            Measure::Temporary => totals.temporary,
        }
    }

    /// Returns whether a site has anything to show in a table of this measure. A leaked block of zero bytes is still a leak.
    pub fn concerns(self, totals: &SiteTotals) -> bool {
        match self {
            Measure::Peak => totals.peak_bytes > 0 || totals.peak_blocks > 0,
            Measure::Leaked => totals.leaked_bytes > 0 || totals.leaked_blocks > 0,
            _ => self.of_site(totals) > 0,
        }
    }

    /// Returns whether a profile's source has this metric. Every front end and every export calls this.
    pub fn is_known(self, known: &Availability) -> bool {
        match self {
            Measure::Allocations => known.allocations,
            Measure::Bytes => known.bytes,
            Measure::Peak => known.peak,
            Measure::Leaked => known.leaked,
            Measure::Temporary => known.temporary,
        }
    }
}

impl Metric for Measure {
    type Weights = SiteTotals;

    const ALL: &'static [Measure] = &Measure::ALL;

    const TELLING: &'static [Measure] =
        &[Measure::Allocations, Measure::Bytes, Measure::Leaked, Measure::Peak, Measure::Temporary];

    const LIMITS: &'static str = "allocations>+1% or leaked>0";

    fn word(self) -> &'static str {
        self.word()
    }

    fn subject(self) -> &'static str {
        self.subject()
    }

    fn unit(self) -> Unit {
        if self.is_bytes() { Unit::Bytes } else { Unit::Count }
    }

    fn of_site(self, totals: &SiteTotals) -> u64 {
        self.of_site(totals)
    }

    fn concerns(self, totals: &SiteTotals) -> bool {
        self.concerns(totals)
    }
}

impl Weights for SiteTotals {
    type Metric = Measure;

    fn add(&mut self, other: &SiteTotals) {
        self.add(other);
    }

    fn tie(&self) -> [u64; 2] {
        [self.bytes, self.allocations]
    }
}
