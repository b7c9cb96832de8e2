//! What the script of a picture works on: all boxes that are kept, also those that are too narrow to be drawn at first.
//!
//! Columns instead of boxes, because a hundred thousand of them are read while somebody waits. `flame.js` is the reader.

use crate::FlameGraph;
use crate::colours::Tone;
use crate::kept::{KeptBox, KeptBoxes};
use crate::written::{PLACES_MAX, language_name};
use mallow_base::Language;
use mallow_stacks::{Flames, Unit};
use serde::Serialize;
use std::collections::BTreeMap;

/// The document.
#[derive(Serialize)]
struct Data<'a> {
    unit: &'static str,
    counted: &'a str,
    compared: bool,
    icicle: bool,
    /// By language: what it is called; none for machine code.
    languages: Vec<Option<&'static str>>,
    /// By function.
    names: Vec<&'a str>,
    language: Vec<usize>,
    tones: Vec<String>,
    /// By place.
    places: Vec<&'a str>,
    /// By box, each before those that it calls: how many calls are below it.
    depth: Vec<u32>,
    /// Its function; -1 for the root.
    function: Vec<i64>,
    after: Vec<u64>,
    own_after: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    own_before: Vec<u64>,
    /// Where it differs from `after`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    width: Vec<u64>,
    /// How often a box stands on a stack, where that is more than once.
    times: BTreeMap<usize, u32>,
    at: Vec<At>,
}

/// Where a box was.
#[derive(Serialize)]
#[serde(untagged)]
enum At {
    /// At one place; -1 for none.
    One(i64),
    /// At several, the heaviest first. A last number below 0 says how many are not named.
    Several(Vec<i64>),
}

/// The data as JSON that may stand in any part of an XML document.
pub(crate) fn json(graph: &FlameGraph, flames: &Flames, kept: &KeptBoxes<'_>) -> String {
    let functions = &flames.functions;
    let boxes = || kept.boxes.iter();
    let of_two = |of: fn(&KeptBox<'_>) -> u64| -> Vec<u64> {
        if graph.is_compared { boxes().map(of).collect() } else { Vec::new() }
    };
    let (places, at) = places(flames, kept);
    let data = Data {
        unit: match graph.unit {
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Nanoseconds => "nanoseconds",
        },
        counted: &graph.counted,
        compared: graph.is_compared,
        icicle: graph.icicle,
        languages: Language::ALL.iter().map(|language| language_name(*language)).collect(),
        names: functions.iter().map(|function| function.name.as_str()).collect(),
        language: functions.iter().map(|function| number(function.language)).collect(),
        tones: functions
            .iter()
            .map(|function| Tone::of_function(&function.name, function.language).class())
            .collect(),
        places,
        depth: boxes().map(|of| of.depth).collect(),
        function: boxes().map(|of| of.this.function.map_or(-1, |function| i64::from(function.0))).collect(),
        after: boxes().map(|of| of.weight.after).collect(),
        own_after: boxes().map(|of| of.this.own.after).collect(),
        before: of_two(|of| of.weight.before),
        own_before: of_two(|of| of.this.own.before),
        width: of_two(|of| of.width),
        times: boxes()
            .enumerate()
            .filter(|(_, of)| of.this.times > 1)
            .map(|(at, of)| (at, of.this.times))
            .collect(),
        at,
    };
    harmless(serde_json::to_string(&data).unwrap_or_default())
}

fn number(language: Language) -> usize {
    Language::ALL.iter().position(|other| *other == language).unwrap_or_default()
}

/// The texts of the places that are named, and which of them each box has.
fn places<'a>(flames: &'a Flames, kept: &KeptBoxes<'_>) -> (Vec<&'a str>, Vec<At>) {
    let mut texts = Vec::new();
    let mut numbers = vec![-1; flames.places.len()];
    let mut at = Vec::with_capacity(kept.boxes.len());
    for of in &kept.boxes {
        let places = of.this.places();
        let named: Vec<i64> = places
            .iter()
            .take(PLACES_MAX)
            .map(|(place, _)| {
                let number = &mut numbers[place.0 as usize];
                if *number < 0 {
                    *number = texts.len() as i64;
                    texts.push(flames.places[place.0 as usize].as_str());
                }
                *number
            })
            .collect();
        let more = places.len() - named.len();
        at.push(match (named.as_slice(), more) {
            ([], _) => At::One(-1),
            ([one], 0) => At::One(*one),
            _ => At::Several(named.into_iter().chain((more > 0).then_some(-(more as i64))).collect()),
        });
    }
    (texts, at)
}

/// JSON in which nothing can end a section of XML, and nothing stands that XML forbids.
fn harmless(json: String) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                safe.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => safe.push(c),
        }
    }
    safe
}
