//! The part of `mallow report` that asks for what single events tell.

use super::filter::LowWindow;
use clap::Args;
use mallow_base::quantity;
use mallow_query::Moment;

/// What single events tell; each is shown instead of the tables over the whole recording.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What happened when")]
pub(crate) struct LowEvents {
    /// Show live memory, allocations and resident memory over time
    #[arg(long, conflicts_with_all = TABLES)]
    pub(crate) timeline: bool,
    /// Show how large blocks are and how long they live
    #[arg(long, conflicts_with_all = TABLES)]
    pub(crate) histogram: bool,
    /// Show what each thread allocated and freed
    #[arg(long, conflicts_with_all = TABLES)]
    pub(crate) threads: bool,
    /// Show blocks that realloc resized, by where they were allocated first
    #[arg(long, conflicts_with_all = TABLES)]
    pub(crate) chains: bool,
    /// Show sites whose blocks were freed before their thread made N further allocations; 1 is what the counting rules call temporary
    #[arg(long, value_name = "N", conflicts_with_all = TABLES, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) temporary_within: Option<u64>,
    /// Show sites by the blocks that lived shorter than TIME, such as 1ms
    #[arg(long, value_name = "TIME", conflicts_with_all = TABLES, value_parser = duration_us)]
    pub(crate) short_lived: Option<u64>,
    #[command(flatten)]
    pub(crate) window: LowWindow,
}

/// The flags that lay out figures over the whole recording.
const TABLES: [&str; 6] = ["sort", "points", "tree", "per", "functions", "peek"];

const DURATION: &str = "a time such as 1.5s, 200ms, 300us, 2min or 1h was expected";

/// `1.5s` as microseconds.
fn duration_us(text: &str) -> Result<u64, String> {
    let micros = quantity::micros(text).map(f64::round).filter(|us| *us < 1e18);
    micros.map(|us| us as u64).ok_or_else(|| DURATION.into())
}

/// `1.5s` or `10%`.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    const SHARE: &str = "a percentage from 0% to 100% was expected";
    let Some(percent) = text.trim().strip_suffix('%') else {
        let or_share =
            |_| "a time such as 1.5s, 200ms, 300us, or a percentage such as 10% was expected".into();
        return duration_us(text).map(Moment::Micros).map_err(or_share);
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
        ] {
            assert_eq!((duration_us(text), moment(text)), (Ok(us), Ok(Moment::Micros(us))), "{text}");
        }
        for text in
            ["", "5", "s", "-1s", "1e30h", "nans", "infs", "1.5 parsecs", "10%%", "101%", "-1%", "nan%"]
        {
            assert!(moment(text).is_err(), "{text}");
        }
        assert_eq!(moment("12.5%"), Ok(Moment::Share(125_000)));
        assert_eq!(moment("100%"), Ok(Moment::Share(1_000_000)));
        assert!(duration_us("10%").is_err());
    }
}
