//! A part of a recording's time, as typed.

use super::filter::LowExpression;
use super::quantity::time_us;
use clap::Args;
use mallow_query::{Moment, PartRequest};

/// A part of a recording's time.
#[derive(Debug, Default, Args)]
pub(crate) struct LowWindow {
    /// Only what happened from TIME on, such as 1.5s, 200ms, 300us or 10%
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) from: Option<Moment>,
    /// Only what happened before TIME
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) to: Option<Moment>,
    /// What was live at TIME, and what was allocated before
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to"], value_parser = moment)]
    pub(crate) at: Option<Moment>,
}

impl LowWindow {
    /// Returns the part that this window and a filter select.
    pub(crate) fn part(self, expression: LowExpression) -> PartRequest {
        PartRequest { from: self.from, to: self.to, at: self.at, filter: expression.filter }
    }
}

/// Parses `1.5s` or `10%`.
fn moment(text: &str) -> Result<Moment, String> {
    const SHARE: &str = "a percentage from 0% to 100% was expected";
    let Some(percent) = text.trim().strip_suffix('%') else {
        let or_share =
            |_| "a time such as 1.5s, 200ms, 300us, or a percentage such as 10% was expected".into();
        return time_us(text).map(Moment::Micros).map_err(or_share);
    };
    let percent: f64 = percent.trim().parse().map_err(|_| SHARE)?;
    if (0.0..=100.0).contains(&percent) {
        Ok(Moment::Share((percent * 10_000.0).round() as u32))
    } else {
        Err(SHARE.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, us) in [
            ("1.5s", 1_500_000),
            ("200ms", 200_000),
            ("300us", 300),
            ("7 µs", 7),
            ("2min", 120_000_000),
            ("1h", 3_600_000_000),
            ("0s", 0),
            ("5", 5_000_000),
        ] {
            assert_eq!((time_us(text), moment(text)), (Ok(us), Ok(Moment::Micros(us))), "{text}");
        }
        for text in ["", "s", "-1s", "1e30h", "nans", "infs", "1.5 parsecs", "10%%", "101%", "-1%", "nan%"] {
            assert!(moment(text).is_err(), "{text}");
        }
        assert_eq!(moment("12.5%"), Ok(Moment::Share(125_000)));
        assert_eq!(moment("100%"), Ok(Moment::Share(1_000_000)));
        assert!(time_us("10%").is_err());
    }
}
