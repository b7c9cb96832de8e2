//! Limits on what may become more: `allocations>+1%`, `bytes>+64KiB`, `leaked>0`.
//!
//! ```text
//! LIMIT   = MEASURE ">" AMOUNT
//! MEASURE = "allocations" | "bytes" | "peak" | "leaked" | "temporary", or the words of another set of metrics
//! AMOUNT  = "+" NUMBER "%"        more than N per cent above before
//!         | "+" NUMBER [UNIT]     more than N above before
//!         | NUMBER [UNIT]         more than N after, whatever it was before
//! NUMBER  = digits ["." digits]
//! UNIT    = "k" | "M" | "G"  for counts,  "B" | "KiB" | "MiB" | "GiB" | …  for bytes,  "ns" | "us" | "ms" | "s" | "min" | …  for times
//! ```
//!
//! Everything is compared in whole numbers, never in floating point: a limit that is met exactly holds.

use super::{Change, Comparison};
use crate::Measure;
use mallow_base::quantity;
use mallow_stacks::{Metric, Unit};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// More digits than a metric can have mean nothing.
const DIGITS_MAX: usize = 18;

/// A limit on a measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit<M = Measure> {
    /// The limited metric.
    pub measure: M,
    kind: Kind,
    amount: Decimal,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Per cent above before.
    Percent,
    /// Above before.
    More,
    /// After.
    Most,
}

/// `digits / 10^decimals * unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    decimals: u32,
    unit: u64,
}

/// Why a text is no limit; a sentence without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitError(pub(super) String);

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LimitError {}

/// The result of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict<M = Measure> {
    /// The limit.
    pub limit: Limit<M>,
    /// The values that it was compared with.
    pub change: Change,
    /// Whether the limit is exceeded; `None` if a profile is incomplete, so that it is undecided.
    pub is_broken: Option<bool>,
}

impl<M> fmt::Display for Limit<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<M: Metric> FromStr for Limit<M> {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let Some((measure, amount)) = text.split_once('>') else {
            return Err(LimitError(format!(
                "`{text}` is not a limit, it has no `>`; write for example {}",
                M::LIMITS
            )));
        };
        let (measure, amount) = (measure.trim(), amount.trim());
        let Some(measure) = M::ALL.iter().copied().find(|known| known.word() == measure) else {
            let words: Vec<&str> = M::ALL.iter().map(|known| known.word()).collect();
            let words = words.join(", ");
            return Err(LimitError(format!("`{measure}` in `{text}` cannot be limited; use one of {words}")));
        };
        let (kind, number) = match (amount.strip_prefix('+'), amount.strip_suffix('%')) {
            (Some(_), Some(percent)) => (Kind::Percent, &percent[1..]),
            (Some(more), None) => (Kind::More, more),
            (None, Some(_)) => {
                return Err(LimitError(format!(
                    "a limit in per cent is one on what became more; write {}>+{amount}",
                    measure.word()
                )));
            }
            (None, None) => (Kind::Most, amount),
        };
        let amount = Decimal::parse(number, kind, measure.unit())
            .map_err(|reason| LimitError(format!("`{number}` in `{text}` {reason}")))?;
        Ok(Self { measure, kind, amount, text: text.trim().to_owned() })
    }
}

impl Decimal {
    fn parse(text: &str, kind: Kind, counted_in: Unit) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = !whole.is_empty()
            && fraction.bytes().all(|b| b.is_ascii_digit())
            && (!fraction.is_empty() || !number.contains('.'));
        let digits = [whole, fraction].concat();
        if !is_number || digits.len() > DIGITS_MAX {
            return Err(format!("is not a number of at most {DIGITS_MAX} digits"));
        }
        let unit = unit_of(unit, kind, counted_in)?;
        let digits = digits.parse().map_err(|_| "is not a number".to_owned())?;
        Ok(Self { digits, decimals: fraction.len() as u32, unit })
    }

    /// Both sides of `value > self * times`, as whole numbers.
    fn is_below(self, value: i128, times: u128) -> bool {
        let Ok(value) = u128::try_from(value) else { return false };
        let scaled = value.saturating_mul(10_u128.pow(self.decimals));
        let bound = u128::from(self.digits).saturating_mul(u128::from(self.unit)).saturating_mul(times);
        scaled > bound
    }
}

fn unit_of(unit: &str, kind: Kind, counted_in: Unit) -> Result<u64, String> {
    let times = match (unit, counted_in) {
        ("", _) => return Ok(1),
        _ if kind == Kind::Percent => return Err("is not a number".to_owned()),
        (_, Unit::Bytes) => quantity::byte_unit(unit),
        (_, Unit::Nanoseconds) => quantity::time_unit_ns(unit),
        ("k", Unit::Count) => Some(1_000),
        ("M", Unit::Count) => Some(1_000_000),
        ("G", Unit::Count) => Some(1_000_000_000),
        _ => None,
    };
    let units = match counted_in {
        Unit::Bytes => "B, KiB, MiB or GiB",
        Unit::Count => "k, M or G",
        Unit::Nanoseconds => "ns, us, ms, s, min or h",
    };
    times.ok_or_else(|| format!("has an unknown unit; use {units}"))
}

impl<M: Metric> Limit<M> {
    /// Returns whether it limits an increase, and needs a reference.
    pub fn is_relative(&self) -> bool {
        self.kind != Kind::Most
    }

    /// Compares the totals with the limit; `None` if one of the profiles does not have the measure. Amounts that are
    /// not percentages are per operation if there are several: `allocations>+1` with `per` 1000 allows 1000.
    pub fn judge(&self, comparison: &Comparison<'_, M::Weights>, per: NonZeroU64) -> Option<Verdict<M>> {
        let change = comparison.total(self.measure)?;
        Some(Verdict { limit: self.clone(), change, is_broken: Some(self.is_broken(change, per)) })
    }

    /// Returns whether a change breaks it.
    pub fn is_broken(&self, change: Change, per: NonZeroU64) -> bool {
        let per = u128::from(per.get());
        match self.kind {
            Kind::Percent => {
                self.amount.is_below(change.difference().saturating_mul(100), u128::from(change.before))
            }
            Kind::More => self.amount.is_below(change.difference(), per),
            Kind::Most => self.amount.is_below(i128::from(change.after), per),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(limit: &str, before: u64, after: u64, per: u64) -> bool {
        let limit: Limit = limit.parse().unwrap();
        limit.is_broken(Change { before, after }, NonZeroU64::new(per).unwrap())
    }

    #[test]
    fn a_limit_that_is_met_exactly_holds() {
        for (limit, before, holds, breaks) in [
            ("allocations>+1%", 1000, 1010, 1011),
            ("allocations>+0.5%", 1000, 1005, 1006),
            ("allocations > +10", 1000, 1010, 1011),
            ("allocations>+1k", 0, 1000, 1001),
            ("bytes>+1.5KiB", 100, 1636, 1637),
            ("bytes>+1.5K", 100, 1636, 1637),
            ("leaked>0", 5, 0, 1),
            ("peak>2 MiB", 0, 2 << 20, (2 << 20) + 1),
            ("temporary>+0%", 7, 7, 8),
        ] {
            assert!(!broken(limit, before, holds, 1), "{limit} holds");
            assert!(broken(limit, before, breaks, 1), "{limit} breaks");
            assert!(!broken(limit, u64::MAX, 0, 1), "{limit} does not mind less");
        }
    }

    #[test]
    fn an_increase_from_zero_exceeds_every_percentage() {
        assert!(broken("leaked>+500%", 0, 1, 1));
        assert!(!broken("leaked>+500%", 0, 0, 1));
    }

    #[test]
    fn amounts_are_per_operation() {
        assert!(!broken("allocations>+1", 5000, 6000, 1000));
        assert!(broken("allocations>+1", 5000, 6001, 1000));
        assert!(!broken("allocations>+0.001", 5000, 5001, 1000));
        assert!(broken("allocations>20", 0, 20_001, 1000));
        assert!(broken("allocations>+1%", 5000, 5051, 1000));
    }

    #[test]
    fn the_largest_metrics_do_not_overflow() {
        assert!(
            broken("bytes>+999999999999999999%", 1, u64::MAX, 1)
                == (u128::from(u64::MAX) * 100 > 999_999_999_999_999_999)
        );
        assert!(!broken("bytes>+999999999999999999GiB", 0, u64::MAX, u64::MAX));
        assert!(broken("bytes>0.000000000000001", 0, u64::MAX, 1));
    }

    #[test]
    fn an_invalid_limit_is_refused_with_a_reason() {
        for (text, reason) in [
            (
                "allocations",
                "`allocations` is not a limit, it has no `>`; write for example allocations>+1% or leaked>0",
            ),
            (
                "blocks>1",
                "`blocks` in `blocks>1` cannot be limited; use one of allocations, bytes, peak, leaked, temporary",
            ),
            ("bytes>5%", "a limit in per cent is one on what became more; write bytes>+5%"),
            ("bytes>", "`` in `bytes>` is not a number of at most 18 digits"),
            ("bytes>+", "`` in `bytes>+` is not a number of at most 18 digits"),
            ("bytes>-1", "`-1` in `bytes>-1` is not a number of at most 18 digits"),
            ("bytes>1.", "`1.` in `bytes>1.` is not a number of at most 18 digits"),
            ("bytes>+1Kb", "`1Kb` in `bytes>+1Kb` has an unknown unit; use B, KiB, MiB or GiB"),
            ("allocations>1KiB", "`1KiB` in `allocations>1KiB` has an unknown unit; use k, M or G"),
            ("bytes>+1k%", "`1k` in `bytes>+1k%` is not a number"),
            ("bytes>=1", "`=1` in `bytes>=1` is not a number of at most 18 digits"),
            ("bytes>+%", "`` in `bytes>+%` is not a number of at most 18 digits"),
        ] {
            assert_eq!(text.parse::<Limit>().unwrap_err().to_string(), reason, "{text}");
        }
    }
}
