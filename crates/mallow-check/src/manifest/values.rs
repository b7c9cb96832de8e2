//! The values that a manifest can have. A value that makes no sense is refused where it stands, so that the
//! sentence can say where.

use super::Mode;
use super::raw::{LimitTable, RawTolerance};
use crate::limit::{Combine, Limit, Tolerance};
use crate::nearest::nearest;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::time::Duration;

/// A number from 1 on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positive(pub(super) u64);

impl Positive {
    /// The number where a smaller type is wanted: nobody has more runs than that.
    pub(super) fn small(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Positive, D::Error> {
        match i64::deserialize(source)? {
            number @ 1.. => Ok(Positive(number.unsigned_abs())),
            number => Err(de::Error::custom(format!("this must be at least 1, and is {number}"))),
        }
    }
}

/// A test's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(pub(super) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Name, D::Error> {
        let name = String::deserialize(source)?;
        match wrong_name(&name) {
            Some(reason) => Err(de::Error::custom(reason)),
            None => Ok(Name(name)),
        }
    }
}

/// Why a text cannot name a test, whose name becomes the name of files.
pub(crate) fn wrong_name(name: &str) -> Option<String> {
    const LENGTH_MAX: usize = 120;
    let safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.is_empty() {
        Some("a test's name cannot be empty".to_owned())
    } else if let Some(letter) = name.chars().find(|letter| !safe(*letter)) {
        Some(format!(
            "the test's name {name:?} has {letter:?} in it; names of tests are made of letters, digits, `_`, `-` and `.`"
        ))
    } else if name.starts_with(['.', '-']) {
        Some(format!("the test's name {name:?} must begin with a letter, a digit or `_`"))
    } else if name.len() > LENGTH_MAX {
        Some(format!("the test's name has {} letters; it can have {LENGTH_MAX}", name.len()))
    } else {
        None
    }
}

/// A command: a list of words with at least one.
#[derive(Clone, Debug)]
pub(super) struct Words(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Words, D::Error> {
        let words = words(source, r#"a list of words, such as ["./bench", "--fast"]"#, false)?;
        match words.first().map(String::as_str) {
            None => Err(de::Error::custom("a command needs at least the name of a program")),
            Some("") => Err(de::Error::custom("the name of the program is empty")),
            Some(_) => Ok(Words(words)),
        }
    }
}

/// A compiler's flags: a list of words, or a text that is split at spaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Flags {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Flags, D::Error> {
        words(source, r#"flags, such as ["-DFAST", "-Iinclude"] or "-DFAST -Iinclude""#, true).map(Flags)
    }
}

fn words<'de, D: Deserializer<'de>>(
    source: D,
    expected: &'static str,
    splits: bool,
) -> Result<Vec<String>, D::Error> {
    struct List(&'static str, bool);
    impl<'de> Visitor<'de> for List {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            match self.1 {
                true => Ok(text.split_whitespace().map(str::to_owned).collect()),
                false => Err(E::invalid_type(de::Unexpected::Str(text), &self)),
            }
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
            let mut words = Vec::new();
            while let Some(word) = list.next_element()? {
                words.push(word);
            }
            Ok(words)
        }
    }
    source.deserialize_any(List(expected, splits))
}

/// `mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawMode(pub(super) Mode);

impl<'de> Deserialize<'de> for RawMode {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawMode, D::Error> {
        let word = String::deserialize(source)?;
        let known = Mode::ALL.into_iter().find(|mode| mode.word() == word);
        known.map(RawMode).ok_or_else(|| one_of("mode", &word, &Mode::ALL.map(Mode::word)))
    }
}

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

fn one_of<E: de::Error>(what: &str, word: &str, known: &[&str]) -> E {
    let meant = match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => {
            format!(
                "there are {}",
                known.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
            )
        }
    };
    E::custom(format!("there is no {what} {word:?}; {meant}"))
}

/// A length of time: a number with `ms`, `s` or `min`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawTimeout(pub(super) Duration);

impl<'de> Deserialize<'de> for RawTimeout {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawTimeout, D::Error> {
        struct Time;
        impl Visitor<'_> for Time {
            type Value = RawTimeout;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a time with its unit, such as "60s", "500ms" or "2min""#)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawTimeout, E> {
                time(text).map(RawTimeout).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        source.deserialize_any(Time)
    }
}

/// None for nonsense and for no time at all.
fn time(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let time_ms = match text[digits..].trim_start() {
        "ms" => number,
        "s" => number.checked_mul(1000)?,
        "min" => number.checked_mul(60_000)?,
        _ => return None,
    };
    (time_ms > 0).then(|| Duration::from_millis(time_ms))
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

/// A limit: a number, which is the most that is allowed, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawLimit(pub(super) Limit);

impl<'de> Deserialize<'de> for RawLimit {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawLimit, D::Error> {
        struct NumberOrTable;
        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = RawLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a limit, such as 5, { min = 3, max = 5 } or { abs = 50, rel = "1%" }"#)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<RawLimit, E> {
                match u64::try_from(number) {
                    Ok(max) => Ok(RawLimit(Limit::Absolute { min: None, max: Some(max) })),
                    Err(_) => Err(E::custom(format!("a limit cannot be less than 0, and is {number}"))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RawLimit, A::Error> {
                let table = LimitTable::deserialize(de::value::MapAccessDeserializer::new(table))?;
                limit(&table).map(RawLimit).map_err(de::Error::custom)
            }
        }
        source.deserialize_any(NumberOrTable)
    }
}

fn limit(table: &LimitTable) -> Result<Limit, &'static str> {
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
            let (min, max) = (table.min, table.max);
            match min.zip(max).is_some_and(|(min, max)| min > max) {
                true => Err("`min` is greater than `max`"),
                false => Ok(Limit::Absolute { min, max }),
            }
        }
        (false, true) if table.combine.is_some() && (table.abs.is_none() || table.rel.is_none()) => {
            Err("`combine` needs `abs` and `rel`")
        }
        (false, true) => Ok(Limit::Relative(Tolerance {
            abs: table.abs,
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
                let table = LimitTable::deserialize(de::value::MapAccessDeserializer::new(table))?;
                match limit(&table).map_err(de::Error::custom)? {
                    Limit::Relative(tolerance) => Ok(RawTolerance(tolerance)),
                    Limit::Absolute { .. } => Err(de::Error::custom(
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

/// The name of a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VariableName(pub(super) String);

impl<'de> Deserialize<'de> for VariableName {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<VariableName, D::Error> {
        let name = String::deserialize(source)?;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(de::Error::custom(format!("{name:?} cannot be the name of a variable")));
        }
        Ok(VariableName(name))
    }
}

/// A variable's value: a text, or a whole number for those who leave the quotes out.
#[derive(Clone, Debug)]
pub(super) struct VariableValue(pub(super) String);

impl<'de> Deserialize<'de> for VariableValue {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<VariableValue, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = VariableValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a variable's value in quotes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<VariableValue, E> {
                match text.contains('\0') {
                    true => Err(E::custom("a variable's value cannot have a zero byte in it")),
                    false => Ok(VariableValue(text.to_owned())),
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<VariableValue, E> {
                Ok(VariableValue(number.to_string()))
            }
        }
        source.deserialize_any(Value)
    }
}
