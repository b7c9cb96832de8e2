//! Memory over time, and the sites that make it up.

use crate::places::places;
use crate::{Filter, FrameVisibility, PlaceRow};
use mallow_profile::analysis::{Level, Slice, Slices, Timeline};
use mallow_profile::{LiveSample, Process, Profile, Sample};

/// The live blocks of a row of sites over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteOverTime {
    /// Its bytes when most bytes of the process were live.
    pub peak_bytes: u64,
    /// Its bytes at the end of each slice.
    pub live_bytes: Vec<u64>,
}

/// A process's memory over time, from its events.
#[derive(Clone, Debug)]
pub struct OverTime {
    /// The stretch of time.
    pub time: Slices,
    /// The slices.
    pub slices: Vec<Slice>,
    /// Resident bytes at the end of each slice; none before the first sample.
    pub rss_bytes: Vec<Option<u64>>,
    /// When most bytes were live.
    pub peak_us: u64,
    /// How many.
    pub peak_bytes: u64,
    /// The rows that passed the filter; those that held most at the peak first.
    pub rows: Vec<PlaceRow<SiteOverTime>>,
}

impl SiteOverTime {
    /// Its bytes when the last slice ended.
    pub fn end_bytes(&self) -> u64 {
        self.live_bytes.last().copied().unwrap_or(0)
    }

    /// The most bytes it held at the end of a slice, or at the peak.
    pub fn highest_bytes(&self) -> u64 {
        self.live_bytes.iter().copied().max().unwrap_or(0).max(self.peak_bytes)
    }
}

impl OverTime {
    /// Of one process.
    pub fn of(
        profile: &Profile,
        process: &Process,
        timeline: Timeline,
        shown: FrameVisibility,
        filter: &Filter,
    ) -> OverTime {
        let Timeline { time, slices, peak_us, peak_bytes, sites } = timeline;
        #[derive(Default)]
        struct Sum {
            peak_bytes: u64,
            levels: Vec<Level>,
        }
        let sites = sites.iter().map(|site| (site.stack, site));
        let summed = places(profile, shown, filter, sites, |sum: &mut Sum, site| {
            sum.levels.resize(time.count(), Level::default());
            site.series.add_to(&mut sum.levels);
            sum.peak_bytes = sum.peak_bytes.saturating_add(site.peak_bytes);
        });
        let row = |PlaceRow { metrics, stack, folded }: PlaceRow<Sum>| {
            let live_bytes = metrics.levels.iter().map(|level| level.live).collect();
            PlaceRow { metrics: SiteOverTime { peak_bytes: metrics.peak_bytes, live_bytes }, stack, folded }
        };
        let mut rows: Vec<PlaceRow<SiteOverTime>> = summed.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            std::cmp::Reverse((row.metrics.peak_bytes, row.metrics.end_bytes(), row.metrics.highest_bytes()))
        });
        let rss_bytes =
            at_ends(&time, &process.samples, |sample: &Sample| (sample.time_us, sample.rss_bytes));
        OverTime { time, slices, rss_bytes, peak_us, peak_bytes, rows }
    }
}

/// Live memory over time where a source kept samples of it and no events: the highest sample of each slice, or the last one
/// before it, so that a peak between two ends of slices stays visible; none before the first.
pub fn of_live_samples(process: &Process, time: &Slices) -> Vec<Option<LiveSample>> {
    let mut highest = at_ends(time, &process.live_samples, |sample: &LiveSample| (sample.time_us, *sample));
    let end_us = time.begin_us(time.count());
    for sample in
        process.live_samples.iter().filter(|sample| (time.start_us()..=end_us).contains(&sample.time_us))
    {
        let slice = &mut highest[time.of(sample.time_us)];
        if slice.is_none_or(|known| known.live_bytes < sample.live_bytes) {
            *slice = Some(*sample);
        }
    }
    highest
}

/// The last value in each slice, or what it was before.
fn at_ends<S, V: Copy>(time: &Slices, samples: &[S], value: impl Fn(&S) -> (u64, V)) -> Vec<Option<V>> {
    let mut values: Vec<Option<V>> = vec![None; time.count()];
    let end_us = time.begin_us(time.count());
    for (time_us, value) in samples.iter().map(value) {
        // A zoomed time line knows the events before it, but not those after it.
        if time_us <= end_us {
            values[time.of(time_us)] = Some(value);
        }
    }
    let mut latest = None;
    for value in &mut values {
        latest = value.or(latest);
        *value = latest;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time_us: u64, live_bytes: u64) -> LiveSample {
        LiveSample { time_us, live_bytes, ..LiveSample::default() }
    }

    #[test]
    fn samples_last_until_the_next_and_a_peak_stays() {
        let live_samples = vec![sample(10, 5), sample(21, 90), sample(29, 7), sample(55, 0), sample(99, 3)];
        let process = Process { live_samples, ..Process::default() };
        let found = of_live_samples(&process, &Slices::new(0, 60, 6));
        let bytes: Vec<Option<u64>> = found.iter().map(|it| it.map(|sample| sample.live_bytes)).collect();
        // Samples after the end are dropped.
        assert_eq!(bytes, [None, Some(5), Some(90), Some(7), Some(7), Some(0)]);
    }

    #[test]
    fn resident_memory_is_known_from_its_first_sample_on() {
        let samples = [(15, 100), (16, 200), (45, 50), (61, 9)];
        let found = at_ends(&Slices::new(0, 60, 6), &samples, |sample| *sample);
        assert_eq!(found, [None, Some(200), Some(200), Some(200), Some(50), Some(50)]);
    }
}
