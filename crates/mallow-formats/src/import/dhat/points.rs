//! Reads a DHAT file's program points one after the other into the profile.

use super::header::Header;
use crate::import::valgrind_frames::Frames;
use mallow_base::Count;
use mallow_profile::{Availability, ByteAccesses, ProcessIndex, ProfileBuilder, SiteTotals, Totals};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Receives the points of a whole file.
pub(super) struct Points<'a> {
    builder: &'a mut ProfileBuilder,
    process: ProcessIndex,
    frames: Frames,
    has_lifetimes: bool,
    has_times: bool,
    has_accesses: bool,
    is_valgrinds: bool,
    totals: Totals,
    /// The number of points so far.
    count: u64,
    /// The number of points whose own maximum is below what they are known to have held.
    maxima_too_low: u64,
    /// The number of points whose blocks are too large for counts of single bytes.
    too_large: u64,
    /// Whether the file was cut off, and frames may have no text.
    is_cut: bool,
    is_there: bool,
}

/// The result.
pub(super) struct Found {
    pub(super) totals: Totals,
    pub(super) warnings: Vec<String>,
}

/// A point. Version 1 has the names `f` for the end and `tli` for lifetimes.
#[derive(Deserialize)]
#[serde(expecting = "a program point")]
struct Point {
    tb: u64,
    tbk: u64,
    #[serde(alias = "tli")]
    tl: Option<u64>,
    mb: Option<u64>,
    mbk: Option<u64>,
    gb: Option<u64>,
    gbk: Option<u64>,
    #[serde(alias = "fb")]
    eb: Option<u64>,
    #[serde(alias = "fbk")]
    ebk: Option<u64>,
    rb: Option<u64>,
    wb: Option<u64>,
    /// Counts of accesses; a negative number says how many bytes have the count that follows.
    acc: Option<Vec<i64>>,
    fs: Vec<u32>,
}

impl<'a> Points<'a> {
    /// Creates it for a file with this header and size.
    pub(super) fn new(
        header: &Header,
        builder: &'a mut ProfileBuilder,
        process: ProcessIndex,
        has_times: bool,
        file_bytes: u64,
    ) -> Points<'a> {
        Points {
            builder,
            process,
            frames: Frames::new(&header.frames, file_bytes),
            has_lifetimes: header.has_lifetimes(),
            has_times,
            has_accesses: header.has_accesses(),
            is_valgrinds: header.is_valgrinds(),
            totals: Totals::default(),
            count: 0,
            maxima_too_low: 0,
            too_large: 0,
            is_cut: false,
            is_there: false,
        }
    }

    /// Says whether the file was cut off: frames that its table lacks are then named by their numbers.
    pub(super) fn may_lack_frames(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
    }

    /// Returns the sums, and warnings.
    pub(super) fn finish(self, known: Availability) -> Found {
        let mut warnings = Vec::new();
        if self.is_cut {
            let nameless = match self.frames.nameless() {
                0 => String::new(),
                _ => String::from(
                    "; names of frames come last, so frames are numbers, the allocating function among them",
                ),
            };
            warnings.push(format!(
                "the file was cut off: {} program points are read, and what came behind them is missing{nameless}",
                Count(self.count)
            ));
        }
        if self.too_large > 0 {
            warnings.push(format!(
                "accesses by byte (acc) of {} program points are left out: they are of more bytes than DHAT counts one by one",
                Count(self.too_large)
            ));
        }
        if known.own_maximum && self.maxima_too_low > 0 {
            let whose = if self.is_valgrinds {
                "Valgrind looks at them only while the whole heap is at a new peak"
            } else {
                "the file contradicts itself"
            };
            warnings.push(format!(
                "the own maxima (mb, mbk) of {} program points are lower than what they held: {whose}",
                Count(self.maxima_too_low)
            ));
        }
        Found { totals: self.totals, warnings }
    }

    fn take<E: Error>(&mut self, point: &Point) -> Result<(), E> {
        self.count += 1;
        let frames = self.frames.len();
        let is_known = point.fs.iter().all(|number| (*number as usize) < frames);
        if !is_known && !self.is_cut {
            return Err(self.expected(format_args!("a frame's number below {frames}")));
        }
        let site = self.metrics(point)?;
        let stack = match is_known {
            true => self.frames.stack(self.builder, &point.fs),
            false => {
                let numbers: Vec<u32> =
                    point.fs.iter().map(|number| self.frames.known_or_nameless(*number)).collect();
                self.frames.stack(self.builder, &numbers)
            }
        };
        let stack = stack.map_err(|_| self.expected(format_args!("less text of inlined frames")))?;
        let holds_most =
            site.peak_bytes.max(site.leaked_bytes).max(u64::from(site.allocations > 0 && site.bytes > 0));
        self.maxima_too_low += u64::from(self.has_lifetimes && site.live_bytes_max < holds_most);
        self.totals.add(&Totals {
            allocations: site.allocations,
            bytes: site.bytes,
            frees: site.allocations.saturating_sub(site.leaked_blocks),
            peak_bytes: site.peak_bytes,
            peak_blocks: site.peak_blocks,
            leaked_bytes: site.leaked_bytes,
            leaked_blocks: site.leaked_blocks,
            ..Totals::default()
        });
        self.builder.add_site(self.process, stack, &site);
        if self.has_accesses {
            let accesses = self.accesses(point)?;
            self.builder.add_accesses(self.process, stack, accesses);
        }
        Ok(())
    }

    /// Returns an error about the point that was read last. Its position is that of the point's end.
    fn expected<E: Error>(&self, what: fmt::Arguments<'_>) -> E {
        E::custom(format_args!("{what} in program point {}", self.count))
    }

    fn metrics<E: Error>(&self, point: &Point) -> Result<SiteTotals, E> {
        let mut site = SiteTotals { allocations: point.tbk, bytes: point.tb, ..SiteTotals::default() };
        if self.has_lifetimes {
            let metric = |metric: Option<u64>, name: &'static str| {
                metric.ok_or_else(|| self.expected(format_args!("the field `{name}`")))
            };
            let lifetimes = metric(point.tl, "tl")?;
            site.lifetime_us_sum = if self.has_times { lifetimes } else { 0 };
            site.live_bytes_max = metric(point.mb, "mb")?;
            site.live_blocks_at_max = metric(point.mbk, "mbk")?;
            site.peak_bytes = metric(point.gb, "gb")?;
            site.peak_blocks = metric(point.gbk, "gbk")?;
            site.leaked_bytes = metric(point.eb, "eb")?;
            site.leaked_blocks = metric(point.ebk, "ebk")?;
        }
        if self.has_accesses {
            site.read_bytes = point.rb.ok_or_else(|| self.expected(format_args!("the field `rb`")))?;
            site.written_bytes = point.wb.ok_or_else(|| self.expected(format_args!("the field `wb`")))?;
        }
        Ok(site)
    }

    /// Returns how often each byte of a point's blocks was accessed, if they have one size.
    fn accesses<E: Error>(&mut self, point: &Point) -> Result<Option<ByteAccesses>, E> {
        let Some(numbers) = &point.acc else { return Ok(None) };
        let (mut runs, mut numbers) = (Vec::new(), numbers.iter());
        while let Some(number) = numbers.next() {
            let (bytes, count) = match number {
                0.. => (1, Some(number)),
                _ => (number.unsigned_abs(), numbers.next()),
            };
            let count = count.and_then(|count| u16::try_from(*count).ok());
            let count = count.ok_or_else(|| self.expected(format_args!("counts of accesses up to 65535")))?;
            runs.push((bytes, u32::from(count)));
        }
        let accesses = ByteAccesses::of_runs(runs);
        self.too_large += u64::from(accesses.is_none());
        Ok(accesses)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Points<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

/// Reads the file as a whole.
impl<'de> Visitor<'de> for &mut Points<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if !matches!(name.as_str(), "pps" | "aps") {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            if std::mem::replace(&mut self.is_there, true) {
                return Err(A::Error::duplicate_field("pps"));
            }
            fields.next_value_seed(List(self))?;
        }
        if self.is_there { Ok(()) } else { Err(A::Error::missing_field("pps")) }
    }
}

/// Reads the list of points within the file.
struct List<'a, 'b>(&'a mut Points<'b>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of program points")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(point) = list.next_element::<Point>()? {
            self.0.take(&point)?;
        }
        Ok(())
    }
}
