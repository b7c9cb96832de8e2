//! Limits on a function's share of the samples: `children:parse_row>+2%`, `self:memcpy>10%`.
//!
//! ```text
//! LIMIT  = ORDER ":" FUNCTION ">" AMOUNT
//! ORDER  = "self"               the function itself
//!        | "children"           the function with all that it called
//! AMOUNT = "+" NUMBER "%"       so many points of a hundred more than before
//!        | NUMBER "%"           so many of a hundred after, whatever it was before
//! ```
//!
//! Samples are chance, so a share has an interval. A limit is broken where all of it lies above, and holds where none of it does; otherwise
//! nobody can tell. What varies between runs for other reasons is not in the interval.

use super::LimitError;
use crate::{FunctionOrder, short_name};
use mallow_cpu::CpuProfile;
use mallow_stats::Proportion;
use std::fmt;
use std::str::FromStr;

/// A limit on a function's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareLimit {
    /// The function's name, whole or without arguments and hashes.
    pub function: String,
    /// Whether callees count too.
    pub order: FunctionOrder,
    /// Whether it limits an increase.
    pub is_relative: bool,
    /// The share that is allowed, in millionths.
    pub most_ppm: u32,
    text: String,
}

/// The result of a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareVerdict {
    /// The limit.
    pub limit: ShareLimit,
    /// Samples before and after.
    pub samples: [Proportion; 2],
    /// Between which bounds what is limited lies with 99 %; none without samples.
    pub interval: Option<(f64, f64)>,
    /// Whether the limit is exceeded; `None` if it is undecided.
    pub is_broken: Option<bool>,
}

impl fmt::Display for ShareLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ShareLimit {
    /// Returns whether a text is meant to be one.
    pub fn is_one(text: &str) -> bool {
        order(text.trim()).is_some()
    }

    /// The word of the report's column.
    pub fn word(&self) -> &'static str {
        match self.order {
            FunctionOrder::Own => "self",
            FunctionOrder::Under => "children",
        }
    }

    /// Compares two profiles with the limit; `None` if neither has such a function.
    pub fn judge(&self, before: &CpuProfile, after: &CpuProfile) -> Option<ShareVerdict> {
        let of_sides = [before, after].map(|profile| self.samples(profile));
        if of_sides.iter().all(|(_, is_known)| !is_known) {
            return None;
        }
        let samples = of_sides.map(|(samples, _)| samples);
        let interval =
            if self.is_relative { samples[1].more_than(samples[0]) } else { samples[1].interval() };
        let most = f64::from(self.most_ppm) / 1e6;
        let is_broken = interval.and_then(|(low, high)| match (low > most, high <= most) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        });
        Some(ShareVerdict { limit: self.clone(), samples, interval, is_broken })
    }

    /// The function's samples, and whether the profile has such a function at all.
    fn samples(&self, profile: &CpuProfile) -> (Proportion, bool) {
        let is_it = |name: &str| name == self.function || short_name(name) == self.function;
        let locations = &profile.stacks.locations;
        let of_location: Vec<(bool, bool)> = locations
            .iter()
            .map(|location| {
                let mut frames = location.frames.iter().map(|frame| is_it(&frame.function));
                let first = frames.next().unwrap_or(false);
                (first, first || frames.any(|is_it| is_it))
            })
            .collect();
        let mut share = Proportion::default();
        for site in &profile.sites {
            share.whole += site.totals.samples;
            let mut stack =
                profile.stacks.chain(site.stack).map(|node| profile.stacks.node(node).location.0 as usize);
            let has_it = match self.order {
                FunctionOrder::Own => stack.next().is_some_and(|innermost| of_location[innermost].0),
                FunctionOrder::Under => stack.any(|location| of_location[location].1),
            };
            share.part += if has_it { site.totals.samples } else { 0 };
        }
        (share, of_location.iter().any(|(_, has_it)| *has_it))
    }
}

fn order(text: &str) -> Option<(FunctionOrder, &str)> {
    let own = text.strip_prefix("self:").map(|rest| (FunctionOrder::Own, rest));
    own.or_else(|| text.strip_prefix("children:").map(|rest| (FunctionOrder::Under, rest)))
}

impl FromStr for ShareLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let wrong = |reason: &str| {
            LimitError(format!(
                "`{text}` is no limit on a function's share{reason}; write for example children:parse_row>+2% or self:memcpy>10%"
            ))
        };
        let (order, rest) = order(text.trim()).ok_or_else(|| wrong(""))?;
        // Names may have such signs too.
        let (function, amount) = rest.rsplit_once('>').ok_or_else(|| wrong(", it has no `>`"))?;
        let amount = amount.trim();
        let number = amount.strip_suffix('%').ok_or_else(|| wrong(", which is in per cent"))?;
        let (is_relative, number) = number.strip_prefix('+').map_or((false, number), |more| (true, more));
        let is_digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let most: Option<f64> = number.parse().ok().filter(|most| is_digits && (0.0..100.0).contains(most));
        let most = most.ok_or_else(|| wrong(", its number is none between 0 and 100"))?;
        let most_ppm = (most * 1e4).round() as u32;
        let function = function.trim().to_owned();
        if function.is_empty() {
            return Err(wrong(", it names no function"));
        }
        Ok(ShareLimit { function, order, is_relative, most_ppm, text: text.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_base::Frame;
    use mallow_cpu::CpuTotals;
    use mallow_stacks::{Address, ProcessIndex, Site, StacksBuilder};

    /// `main` calls `app::work(int)` with so many samples, in which `leaf` is inlined, and does the others itself.
    fn profile(of_work: u64, others: u64) -> CpuProfile {
        let mut builder = StacksBuilder::default();
        let frame = |function: &str| Frame { function: function.into(), ..Frame::default() };
        let main = builder.location(Address::Unknown, vec![frame("main")]);
        let work = builder.location(Address::Unknown, vec![frame("leaf"), frame("app::work(int)")]);
        let site = |stack, samples| Site {
            process: ProcessIndex(0),
            stack,
            totals: CpuTotals { samples, ..CpuTotals::default() },
        };
        let stacks = [builder.stack([main, work]), builder.stack([main]), None];
        let sites = vec![site(stacks[0], of_work), site(stacks[1], others), site(stacks[2], 0)];
        CpuProfile { sites, stacks: builder.finish(), ..CpuProfile::default() }
    }

    fn judged(limit: &str, before: &CpuProfile, after: &CpuProfile) -> ShareVerdict {
        limit.parse::<ShareLimit>().unwrap().judge(before, after).unwrap()
    }

    #[test]
    fn a_limit_breaks_and_holds_only_beyond_the_noise() {
        let (before, after) = (profile(1000, 9000), profile(2000, 8000));
        let broken = |limit: &str| judged(limit, &before, &after).is_broken;
        // From 10 to 20 %, each ±0.8 or 1.0 points.
        assert_eq!(broken("children:app::work>+5%"), Some(true));
        assert_eq!(broken("children:app::work(int)>+15%"), Some(false));
        assert_eq!(broken("children:app::work>+10%"), None);
        assert_eq!(broken("children:app::work>15%"), Some(true));
        assert_eq!(broken("children:app::work>22.5%"), Some(false));
        assert_eq!(broken("children:app::work>20.1%"), None);
        // What is inlined is itself where the time goes.
        assert_eq!(broken("self:app::work>0%"), None);
        assert_eq!(judged("self:leaf>15%", &before, &after).samples.map(|side| side.part), [1000, 2000]);
        assert_eq!(judged("self:main>85%", &before, &after).is_broken, Some(false));
        // In the other direction it is a decrease.
        assert_eq!(judged("children:app::work>+0%", &after, &before).is_broken, Some(false));
    }

    #[test]
    fn an_unavailable_metric_is_not_judged() {
        let (some, nothing) = (profile(10, 10), CpuProfile::default());
        let limit: ShareLimit = "children:wrok>5%".parse().unwrap();
        assert_eq!(limit.judge(&some, &some), None);
        assert_eq!(judged("children:app::work>5%", &some, &nothing).is_broken, None);
        assert_eq!(judged("children:app::work>+5%", &nothing, &some).interval, None);
        // Few samples decide nothing.
        assert_eq!(judged("children:app::work>+5%", &some, &profile(13, 7)).is_broken, None);
    }

    #[test]
    fn an_invalid_limit_of_a_share_is_refused_with_a_reason() {
        let reason = |text: &str| text.parse::<ShareLimit>().unwrap_err().to_string();
        assert!(reason("self:f").contains("it has no `>`"));
        assert!(reason("self:f>5").contains("in per cent"));
        assert!(reason("self:>5%").contains("names no function"));
        for number in ["x%", "-1%", "100%", "1e1%", "%", "+%"] {
            assert!(reason(&format!("self:f>{number}")).contains("between 0 and 100"), "{number}");
        }
        assert!(ShareLimit::is_one("children:f>1%") && !ShareLimit::is_one("time>+1%"));
        let arrow: ShareLimit = "self:operator->>1%".parse().unwrap();
        assert_eq!((arrow.function.as_str(), arrow.to_string()), ("operator->", "self:operator->>1%".into()));
    }
}
