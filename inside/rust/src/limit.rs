//! Limits of a test, as it writes them: `allocations<=45`.

use crate::stats::Stats;

/// A limit: a metric, how it is compared, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit<'a> {
    metric: &'a str,
    compare: Compare,
    value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
}

/// Longer ones first: `<=` begins as `<` does.
const COMPARES: [(&str, Compare, &str); 5] = [
    ("<=", Compare::AtMost, "at most"),
    (">=", Compare::AtLeast, "at least"),
    ("==", Compare::Equal, "exactly"),
    ("<", Compare::Below, "less than"),
    (">", Compare::Above, "more than"),
];

type Of = fn(&Stats) -> u64;

/// The names of the metrics, as `mallow check` and `mallow report --json` have them.
const METRICS: [(&str, Of); 8] = [
    ("allocations", |stats| stats.allocations),
    ("bytes", |stats| stats.bytes),
    ("reallocations", |stats| stats.reallocations),
    ("temporary", |stats| stats.temporary),
    ("peak_bytes", |stats| stats.peak_bytes),
    ("peak_blocks", |stats| stats.peak_blocks),
    ("live_bytes", |stats| stats.live_bytes),
    ("live_blocks", |stats| stats.live_blocks),
];

impl<'a> Limit<'a> {
    /// Reads one; the error is a sentence.
    pub(crate) fn parse(text: &'a str) -> Result<Limit<'a>, String> {
        let wrong = |why: String| format!("'{text}' is no limit: {why}; write it as 'allocations<=45'");
        let (at, sign, compare) = COMPARES
            .iter()
            .filter_map(|(sign, compare, _)| Some((text.find(sign)?, *sign, *compare)))
            .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())))
            .ok_or_else(|| wrong("it compares nothing (<=, <, ==, >=, >)".to_owned()))?;
        let (metric, value) = (text[..at].trim(), text[at + sign.len()..].trim());
        if !METRICS.iter().any(|(name, _)| *name == metric) {
            let known: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
            return Err(wrong(format!("there is no metric '{metric}' (there are {})", known.join(", "))));
        }
        let value = number(value).ok_or_else(|| wrong(format!("'{value}' is no number")))?;
        Ok(Limit { metric, compare, value })
    }

    /// The sentence that says how it is broken, if it is.
    pub(crate) fn broken_by(&self, stats: &Stats) -> Option<String> {
        let (_, of) = METRICS.iter().find(|(name, _)| *name == self.metric)?;
        let is = of(stats);
        let holds = match self.compare {
            Compare::AtMost => is <= self.value,
            Compare::Below => is < self.value,
            Compare::AtLeast => is >= self.value,
            Compare::Above => is > self.value,
            Compare::Equal => is == self.value,
        };
        let words = COMPARES.iter().find(|(_, compare, _)| *compare == self.compare).map_or("", |it| it.2);
        (!holds).then(|| format!("{}: {is}, and the limit is {words} {}", self.metric, self.value))
    }

    /// Whether it is the bytes of a metric that count, and not its calls or blocks.
    pub(crate) fn is_of_bytes(&self) -> bool {
        self.metric.ends_with("bytes")
    }
}

/// `45`, `1.5MiB`; `k` is 1024, as in all of mallow's limits.
fn number(text: &str) -> Option<u64> {
    let value = mallow_base::quantity::bytes(text)?;
    (value.fract() == 0.0 && value < EXACT_MAX).then_some(value as u64)
}

/// Whole numbers up to here are told apart.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(limit: &str, stats: &Stats) -> Option<String> {
        Limit::parse(limit).unwrap().broken_by(stats)
    }

    #[test]
    fn each_comparison_holds_up_to_its_limit_and_not_beyond() {
        let stats = Stats { allocations: 45, peak_bytes: 2048, ..Stats::default() };
        for held in
            ["allocations<=45", "allocations < 46", "allocations>=45", "allocations>44", "peak_bytes==2KiB"]
        {
            assert_eq!(broken(held, &stats), None, "{held}");
        }
        for (limit, sentence) in [
            ("allocations<=44", "allocations: 45, and the limit is at most 44"),
            ("allocations<45", "allocations: 45, and the limit is less than 45"),
            ("allocations>=46", "allocations: 45, and the limit is at least 46"),
            ("allocations>45", "allocations: 45, and the limit is more than 45"),
            ("peak_bytes==2kB", "peak_bytes: 2048, and the limit is exactly 2000"),
        ] {
            assert_eq!(broken(limit, &stats).as_deref(), Some(sentence));
        }
    }

    #[test]
    fn what_is_no_limit_is_a_sentence() {
        for (text, part) in [
            ("allocations", "it compares nothing"),
            ("blocks<=3", "no metric 'blocks'"),
            ("bytes<=much", "'much' is no number"),
            ("bytes<=", "'' is no number"),
            ("bytes<=1.0001", "'1.0001' is no number"),
            ("bytes<=18446744073709551615", "is no number"),
        ] {
            assert!(Limit::parse(text).unwrap_err().contains(part), "{text}");
        }
    }
}
