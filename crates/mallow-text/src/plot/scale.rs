//! Maps values to positions on an axis, with round numbers as ticks.

use mallow_base::Bytes;

/// The number format of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// `1500`, `20 k`, `3 M`.
    #[default]
    Count,
    /// `1.5 MiB`.
    Bytes,
    /// `40 s`, `5 min`, `2 h`.
    Seconds,
}

/// A scale: its ends, and the distance of its ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    from: f64,
    to: f64,
    step: f64,
    unit: Unit,
}

/// Numbers on the horizontal axis are wide, so there are fewer.
const STEPS_ACROSS: f64 = 7.0;
/// The minimum share of its level that a scale spans: noise of a flat curve must not look like growth.
const SPAN_MIN: f64 = 0.1;

impl Scale {
    /// Returns a scale from exactly the minimum to the maximum.
    pub(crate) fn tight(values: impl Iterator<Item = f64>, unit: Unit) -> Scale {
        let (from, to) = ends(values);
        let to = if to > from { to } else { from + 1.0 };
        Scale { from, to, step: step(to - from, unit, STEPS_ACROSS), unit }
    }

    /// Returns a scale with round ends and some room around the values, starting at 0 if that is near.
    pub(crate) fn roomy(values: impl Iterator<Item = f64>, unit: Unit, steps: f64) -> Scale {
        let (least, most) = ends(values);
        let level = most.abs().max(least.abs());
        let missing = (level * SPAN_MIN - (most - least)).max(0.0);
        let (mut from, mut to) = (least - missing / 2.0, most + missing / 2.0);
        if least >= 0.0 {
            let is_near = least < 0.5 * most;
            from = if is_near { 0.0 } else { from.max(0.0) };
        }
        if to <= from {
            to = from + 1.0;
        }
        let step = step(to - from, unit, steps);
        let room = if most > 0.0 { 0.05 * (to - from) } else { 0.0 };
        Scale { from: (from / step).floor() * step, to: ((to + room) / step).ceil() * step, step, unit }
    }

    /// Returns the position of a value, 0 at the start and 1 at the end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    /// Returns the ticks: values with their text.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let first = (self.from / self.step - 1e-9).ceil();
        let values = (0..32).map(|at| (first + f64::from(at)) * self.step);
        let inside = values.take_while(|value| *value <= self.to + self.step * 1e-9);
        inside.map(|value| (value, self.text(value))).collect()
    }

    fn text(&self, value: f64) -> String {
        let sign = if value < -self.step / 2.0 { "-" } else { "" };
        let (size, most) = (value.abs(), self.to.abs().max(self.from.abs()));
        let text = match self.unit {
            Unit::Bytes => bytes(size, self.step, most),
            Unit::Seconds => seconds(size, self.step, most),
            Unit::Count => count(size, self.step, most),
        };
        format!("{sign}{text}")
    }
}

/// Returns the minimum and the maximum, ignoring NaN and infinities; 0 and 1 if there is no value.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let limits = values.filter(|value| value.is_finite()).fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
    });
    limits.unwrap_or((0.0, 1.0))
}

/// Returns a round distance of which about `steps` fit into `span`.
fn step(span: f64, unit: Unit, steps: f64) -> f64 {
    let rough = (span / steps).max(f64::MIN_POSITIVE);
    let (base, choices): (f64, &[f64]) = match unit {
        // Powers of two are round in every larger unit: 512 KiB are 0.5 MiB.
        Unit::Bytes => {
            (unit_of_bytes(rough), &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0])
        }
        Unit::Seconds if rough >= 3600.0 => (3600.0, &[1.0, 2.0, 4.0, 6.0, 12.0, 24.0, 48.0, 120.0, 240.0]),
        Unit::Seconds if rough > 30.0 => (60.0, &[1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0]),
        Unit::Count | Unit::Seconds => (10_f64.powf(rough.log10().floor()), &[1.0, 2.0, 5.0, 10.0]),
    };
    let fits = choices.iter().map(|choice| choice * base).find(|step| *step >= rough * 0.999_999);
    let step = fits.unwrap_or(rough);
    match unit {
        // Bytes and counts have no fractions.
        Unit::Bytes | Unit::Count => step.max(1.0),
        Unit::Seconds => step,
    }
}

fn unit_of_bytes(value: f64) -> f64 {
    let mut unit = 1.0;
    while value >= unit * 1024.0 && unit < 1e18 {
        unit *= 1024.0;
    }
    unit
}

/// Formats bytes: all numbers of an axis have the unit of its end, and are whole if the step allows that.
fn bytes(value: f64, step: f64, most: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = unit_of_bytes(most);
    let place = (unit.log2() / 10.0).round() as usize;
    let Some(name) = UNITS.get(place) else { return Bytes(value as u64).to_string() };
    format!("{} {name}", decimals(value / unit, step / unit))
}

fn count(value: f64, step: f64, most: f64) -> String {
    let (unit, name) = match most {
        most if most >= 1e9 => (1e9, " G"),
        most if most >= 1e6 => (1e6, " M"),
        most if most >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    if value < step / 2.0 {
        return "0".to_owned();
    }
    format!("{}{name}", decimals(value / unit, step / unit))
}

fn seconds(value: f64, step: f64, most: f64) -> String {
    let (unit, name) = match most {
        most if most > 7200.0 => (3600.0, "h"),
        most if most >= 180.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    format!("{} {name}", decimals(value / unit, step / unit))
}

/// Returns the number of decimals that distinguishes neighbouring ticks.
fn decimals(value: f64, step: f64) -> String {
    let mut places = 0_usize;
    let mut scaled = step;
    while places < 3 && (scaled - scaled.round()).abs() > 1e-6 * scaled.abs().max(1e-12) {
        scaled *= 10.0;
        places += 1;
    }
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn metrics_are_round_in_their_unit() {
        let mib = 1_048_576.0;
        let scale = Scale::roomy([3.0 * mib, 11.0 * mib].into_iter(), Unit::Bytes, 6.0);
        assert_eq!(texts(&scale), ["0 MiB", "2 MiB", "4 MiB", "6 MiB", "8 MiB", "10 MiB", "12 MiB"]);
        let scale = Scale::tight([0.0, 70_000.0].into_iter(), Unit::Count);
        assert_eq!(texts(&scale)[..3], ["0", "10 k", "20 k"]);
        let scale = Scale::tight([0.0, 7200.0].into_iter(), Unit::Seconds);
        assert_eq!(texts(&scale)[..3], ["0 min", "30 min", "60 min"]);
    }

    #[test]
    fn noise_of_a_flat_curve_stays_small() {
        let scale = Scale::roomy([10_000_000.0, 10_004_096.0].into_iter(), Unit::Bytes, 6.0);
        assert!(scale.to - scale.from >= 1_000_000.0, "{scale:?}");
        assert!(scale.share(10_004_096.0) - scale.share(10_000_000.0) < 0.005);
    }

    #[test]
    fn every_value_is_inside_whatever_the_values() {
        for values in [vec![], vec![0.0], vec![5.0, 5.0], vec![-3.0, 7.0], vec![f64::NAN, 1e18], vec![1e-9]] {
            for unit in [Unit::Count, Unit::Bytes, Unit::Seconds] {
                let scale = Scale::roomy(values.iter().copied(), unit, 6.0);
                for value in values.iter().filter(|value| value.is_finite()) {
                    assert!((0.0..=1.0).contains(&scale.share(*value)), "{values:?} {scale:?}");
                }
                assert!(scale.ticks().len() <= 32, "{scale:?}");
                assert!(!scale.ticks().is_empty(), "{scale:?}");
            }
        }
    }
}
