//! What a test may cost, as a manifest says it: limits, tolerances, percentages.

use super::values::one_of;
use mallow_gate::limit::{Combine, Limit, Tolerance};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// `combine`
#[derive(Clone, Copy, Debug)]
pub(super) struct RawCombine(pub(super) Combine);

impl<'de> Deserialize<'de> for RawCombine {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawCombine, D::Error> {
        match String::deserialize(source)?.as_str() {
            "and" => Ok(RawCombine(Combine::And)),
            "or" => Ok(RawCombine(Combine::Or)),
            word => Err(one_of("way to combine", word, &["and", "or"])),
        }
    }
}

/// A share, written as `"1.5%"`, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percent(pub(super) u64);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Percent, D::Error> {
        struct Share;
        impl Visitor<'_> for Share {
            type Value = Percent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a percentage with at most four decimals, such as "1%" or "0.05%""#)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Percent, E> {
                percent(text).map(Percent).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        source.deserialize_any(Share)
    }
}

fn percent(text: &str) -> Option<u64> {
    const DECIMALS: usize = 4;
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(decimals) || decimals.len() > DECIMALS {
        return None;
    }
    // A percent is ten thousand millionths: four decimals more.
    format!("{whole}{decimals:0<DECIMALS$}").parse().ok()
}

/// A number in a limit.
trait Amount: DeserializeOwned {
    /// What a limit of such numbers looks like.
    const LIMIT: &'static str;

    /// The number, if it may be written as a text.
    fn in_text(text: &str) -> Option<u64>;

    fn number(self) -> u64;
}

/// How many calls, blocks, objects.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
struct Count(u64);

impl Amount for Count {
    const LIMIT: &'static str = r#"a limit, such as 5, { min = 3, max = 5 } or { abs = 50, rel = "1%" }"#;

    fn in_text(_: &str) -> Option<u64> {
        None
    }

    fn number(self) -> u64 {
        self.0
    }
}

/// How many bytes: a number of them, or a size with its unit.
#[derive(Clone, Copy, Debug)]
struct Size(u64);

impl Amount for Size {
    const LIMIT: &'static str =
        r#"a limit, such as 4096, "64KiB", { min = "1MB", max = "2MB" } or { abs = "4K", rel = "1%" }"#;

    fn in_text(text: &str) -> Option<u64> {
        mallow_base::quantity::whole_bytes(text)
    }

    fn number(self) -> u64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Size, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a size, such as "64KiB", "1.5MB" or a number of bytes from 0 on,"#)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Size, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                u64::try_from(number).map(Size).map_err(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                Size::in_text(text).map(Size).ok_or_else(wrong)
            }
        }
        source.deserialize_any(Bytes)
    }
}

/// A limit written as a table.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitTable<A> {
    min: Option<A>,
    max: Option<A>,
    abs: Option<A>,
    rel: Option<Percent>,
    combine: Option<RawCombine>,
}

/// `tolerance`: what `limit` has, without a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawTolerance(pub(super) Tolerance);

/// A limit: a number, which is the most that is allowed, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawLimit(pub(super) Limit);

impl<'de> Deserialize<'de> for RawLimit {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawLimit, D::Error> {
        source.deserialize_any(NumberOrTable::<Count>(PhantomData)).map(RawLimit)
    }
}

/// The same of bytes, whose numbers may have units.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSizeLimit(Limit);

impl RawSizeLimit {
    pub(super) fn limit(self) -> RawLimit {
        RawLimit(self.0)
    }
}

impl<'de> Deserialize<'de> for RawSizeLimit {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawSizeLimit, D::Error> {
        source.deserialize_any(NumberOrTable::<Size>(PhantomData)).map(RawSizeLimit)
    }
}

struct NumberOrTable<A>(PhantomData<A>);

impl<'de, A: Amount> Visitor<'de> for NumberOrTable<A> {
    type Value = Limit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A::LIMIT)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Limit, E> {
        match u64::try_from(number) {
            Ok(max) => Ok(Limit::Absolute { min: None, max: Some(max) }),
            Err(_) => Err(E::custom(format!("a limit cannot be less than 0, and is {number}"))),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Limit, E> {
        let max = A::in_text(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))?;
        Ok(Limit::Absolute { min: None, max: Some(max) })
    }

    fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Limit, M::Error> {
        let table = LimitTable::<A>::deserialize(de::value::MapAccessDeserializer::new(table))?;
        limit(table).map_err(de::Error::custom)
    }
}

/// A limit on time, which is no count: the longest that is allowed, and no distance from a baseline.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawWall(Duration);

impl RawWall {
    pub(super) fn limit(self) -> RawLimit {
        let max = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        RawLimit(Limit::Absolute { min: None, max: Some(max) })
    }
}

impl<'de> Deserialize<'de> for RawWall {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawWall, D::Error> {
        struct Time;
        impl Visitor<'_> for Time {
            type Value = RawWall;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    r#"the longest time that is allowed, such as "2s" or "500ms"; times have no baseline"#,
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawWall, E> {
                let time = mallow_base::quantity::duration(text).filter(|time| !time.is_zero());
                time.map(RawWall).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        source.deserialize_any(Time)
    }
}

fn limit<A: Amount>(table: LimitTable<A>) -> Result<Limit, &'static str> {
    let in_range = table.min.is_some() || table.max.is_some();
    let at_distance = table.abs.is_some() || table.rel.is_some();
    match (in_range, at_distance) {
        (true, true) => {
            Err("`min` and `max` say what is allowed, `abs` and `rel` how far from the baseline; \
             a limit has one or the other")
        }
        (false, false) => Err("a limit needs `max`, `min`, `abs` or `rel`"),
        (true, false) if table.combine.is_some() => Err("`combine` needs `abs` and `rel`"),
        (true, false) => {
            let (min, max) = (table.min.map(A::number), table.max.map(A::number));
            match min.zip(max).is_some_and(|(min, max)| min > max) {
                true => Err("`min` is greater than `max`"),
                false => Ok(Limit::Absolute { min, max }),
            }
        }
        (false, true) if table.combine.is_some() && (table.abs.is_none() || table.rel.is_none()) => {
            Err("`combine` needs `abs` and `rel`")
        }
        (false, true) => Ok(Limit::Relative(Tolerance {
            abs: table.abs.map(A::number),
            rel_ppm: table.rel.map(|rel| rel.0),
            combine: table.combine.map_or(Combine::And, |combine| combine.0),
        })),
    }
}

impl<'de> Deserialize<'de> for RawTolerance {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawTolerance, D::Error> {
        struct NumberShareOrTable;
        impl<'de> Visitor<'de> for NumberShareOrTable {
            type Value = RawTolerance;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a distance from the baseline, such as 50, "1%" or { abs = 50, rel = "1%" }"#)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<RawTolerance, E> {
                match u64::try_from(number) {
                    Ok(abs) => Ok(relative(Some(abs), None)),
                    Err(_) => Err(E::custom(format!("a tolerance cannot be less than 0, and is {number}"))),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawTolerance, E> {
                let share =
                    percent(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))?;
                Ok(relative(None, Some(share)))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RawTolerance, A::Error> {
                let table = LimitTable::<Count>::deserialize(de::value::MapAccessDeserializer::new(table))?;
                match limit(table).map_err(de::Error::custom)? {
                    Limit::Relative(tolerance) => Ok(RawTolerance(tolerance)),
                    Limit::Absolute { .. } | Limit::None => Err(de::Error::custom(
                        "a tolerance is a distance from the baseline: it has `abs` and `rel`, not `min` and `max`",
                    )),
                }
            }
        }
        source.deserialize_any(NumberShareOrTable)
    }
}

fn relative(abs: Option<u64>, rel_ppm: Option<u64>) -> RawTolerance {
    RawTolerance(Tolerance { abs, rel_ppm, combine: Combine::And })
}
