//! The values that a manifest can have. A value that makes no sense is refused where it stands, so that the
//! sentence can say where.

use super::Mode;
use crate::did_you_mean::nearest;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::time::Duration;

/// A number from 1 on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positive(pub(super) u64);

impl Positive {
    /// Converts the number to a smaller type: no one has more runs than that.
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

/// The error for a word that is none of the known ones, with the one that was meant.
pub(super) fn one_of<E: de::Error>(what: &str, word: &str, known: &[&str]) -> E {
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

/// A length of time: with its unit, or a number in the unit of the key; no time at all is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawTimeout(pub(super) Duration);

impl<'de> Deserialize<'de> for RawTimeout {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawTimeout, D::Error> {
        const EXPECTED: &str = r#"a time, such as "60s", "500ms" or "2min", or a number of seconds,"#;
        source
            .deserialize_any(Time { expected: EXPECTED, unit_s: 1.0, min: Duration::from_nanos(1) })
            .map(RawTimeout)
    }
}

/// How long to wait, in whole milliseconds: a number is one of milliseconds, as the key's older name says.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawQuiesce(pub(super) u32);

impl<'de> Deserialize<'de> for RawQuiesce {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<RawQuiesce, D::Error> {
        const EXPECTED: &str = r#"a time, such as "250ms" or "1s", or a number of milliseconds,"#;
        let time = source.deserialize_any(Time { expected: EXPECTED, unit_s: 1e-3, min: Duration::ZERO })?;
        Ok(RawQuiesce(u32::try_from(time.as_millis()).unwrap_or(u32::MAX)))
    }
}

/// A time as it is typed.
struct Time {
    expected: &'static str,
    /// What a number without a unit counts.
    unit_s: f64,
    min: Duration,
}

impl Visitor<'_> for Time {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        let time = mallow_base::quantity::duration(text).filter(|time| *time >= self.min);
        time.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
        let time = Duration::try_from_secs_f64(number as f64 * self.unit_s).ok();
        let wrong = || E::invalid_value(de::Unexpected::Signed(number), &self);
        time.filter(|time| *time >= self.min).ok_or_else(wrong)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Duration, E> {
        let time = Duration::try_from_secs_f64(number * self.unit_s).ok();
        let wrong = || E::invalid_value(de::Unexpected::Float(number), &self);
        time.filter(|time| *time >= self.min).ok_or_else(wrong)
    }
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
