//! What colours a box has, by light and in the dark.
//!
//! A colour never stands alone: languages have borders of their own and are written in the boxes, and so is what a difference is.
//! Everything is written as a class with a plain colour, because viewers that are no browsers know no more of style sheets.

use mallow_base::Language;
use mallow_stacks::FlameWeight;

/// Tints of a language's colour, so that neighbours can be told apart.
const TINTS: u32 = 6;

/// A colour in the words of a style sheet: hue, saturation, lightness.
struct Colour(u32, u32, u32);

/// What a box is coloured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Its function: the same in every graph.
    Plain {
        /// What it is written in.
        language: Language,
        /// Which of the tints.
        tint: u32,
    },
    /// How much more or less it became, in steps from 1 to 4.
    More(u32),
    /// As above.
    Less(u32),
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
    /// It stayed as it was.
    Same,
    /// All stacks together.
    Root,
}

impl Tone {
    pub(crate) fn of_function(name: &str, language: Language) -> Tone {
        // FNV-1a: the same on every machine and in every release.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Tone::Plain { language, tint: (hash % u64::from(TINTS)) as u32 }
    }

    pub(crate) fn of_change(weight: FlameWeight) -> Tone {
        let FlameWeight { before, after } = weight;
        let larger = before.max(after);
        let step = match u128::from(before.abs_diff(after)) * 100 / u128::from(larger.max(1)) {
            0..5 => 1,
            5..20 => 2,
            20..50 => 3,
            _ => 4,
        };
        match (before, after) {
            (before, after) if before == after => Tone::Same,
            (0, _) => Tone::New,
            (_, 0) => Tone::Gone,
            (before, after) if after > before => Tone::More(step),
            _ => Tone::Less(step),
        }
    }

    /// Its class in the picture.
    pub(crate) fn class(self) -> String {
        match self {
            Tone::Plain { language, tint } => format!("{}{tint}", letter(language)),
            Tone::More(step) => format!("m{step}"),
            Tone::Less(step) => format!("l{step}"),
            Tone::New => "new".to_owned(),
            Tone::Gone => "gone".to_owned(),
            Tone::Same => "same".to_owned(),
            Tone::Root => "root".to_owned(),
        }
    }

    fn all(is_compared: bool, languages: &[Language]) -> Vec<Tone> {
        if is_compared {
            let steps = (1..=4).flat_map(|step| [Tone::More(step), Tone::Less(step)]);
            return steps.chain([Tone::New, Tone::Gone, Tone::Same, Tone::Root]).collect();
        }
        let tints = |language: &Language| {
            let language = *language;
            (0..TINTS).map(move |tint| Tone::Plain { language, tint })
        };
        languages.iter().flat_map(tints).chain([Tone::Root]).collect()
    }

    /// By light, then in the dark.
    fn colours(self) -> [Colour; 2] {
        match self {
            Tone::Plain { language, tint } => {
                let (hue, saturation) = hue(language);
                // Neighbouring tints are far from each other.
                let at = tint * 5 % TINTS;
                [
                    Colour(hue + at * 3, saturation, 74 + at * 3),
                    Colour(hue + at * 3, saturation * 5 / 9, 24 + at * 2),
                ]
            }
            Tone::More(step) => [Colour(8, 82, 95 - step * 6), Colour(8, 25 + step * 10, 20 + step * 4)],
            Tone::Less(step) => [Colour(214, 82, 95 - step * 6), Colour(214, 25 + step * 10, 20 + step * 4)],
            Tone::New => [Colour(2, 86, 70), Colour(2, 68, 38)],
            Tone::Gone => [Colour(216, 74, 78), Colour(216, 50, 36)],
            Tone::Same => [Colour(45, 8, 91), Colour(45, 5, 22)],
            Tone::Root => [Colour(220, 8, 86), Colour(220, 6, 28)],
        }
    }
}

fn letter(language: Language) -> char {
    match language {
        Language::Native => 'n',
        Language::Python => 'p',
        Language::Ruby => 'r',
        Language::JavaScript => 's',
        Language::Java => 'j',
    }
}

/// Hues that people with the common kinds of colour blindness tell apart beside each other.
fn hue(language: Language) -> (u32, u32) {
    match language {
        Language::Native => (32, 86),
        Language::Python => (205, 72),
        Language::Ruby => (338, 70),
        Language::JavaScript => (66, 62),
        Language::Java => (262, 58),
    }
}

/// The border of a language's boxes.
fn dashes(language: Language) -> Option<&'static str> {
    match language {
        Language::Native => None,
        Language::Python => Some("none"),
        Language::Ruby => Some("6 2"),
        Language::JavaScript => Some("2 2"),
        Language::Java => Some("8 2 2 2"),
    }
}

/// The rules of a style sheet for all colours that a picture may have: by light, then in the dark.
pub(crate) fn rules(is_compared: bool, languages: &[Language]) -> [String; 2] {
    let mut rules = [String::new(), String::new()];
    if is_compared {
        // What is gone is hatched.
        rules[0].push_str(".gone{fill:url(#mallow-gone)}.hatch{stroke-width:4}");
    }
    for tone in Tone::all(is_compared, languages) {
        let property = if tone == Tone::Gone { "stroke" } else { "fill" };
        for (rules, Colour(hue, saturation, lightness)) in rules.iter_mut().zip(tone.colours()) {
            let (class, colour) = (tone.class(), format!("hsl({hue},{saturation}%,{lightness}%)"));
            let class = if tone == Tone::Gone { "hatch" } else { class.as_str() };
            rules.push_str(&format!(".{class}{{{property}:{colour}}}"));
        }
    }
    for language in languages.iter().filter(|_| !is_compared && languages.len() > 1) {
        if let Some(dashes) = dashes(*language) {
            let classes: Vec<String> =
                (0..TINTS).map(|tint| format!(".wide .{}{tint}", letter(*language))).collect();
            let (hue, classes) = (hue(*language).0, classes.join(","));
            for (rules, lightness) in rules.iter_mut().zip([36, 72]) {
                rules.push_str(&format!(
                    "{classes}{{stroke:hsl({hue},45%,{lightness}%);stroke-dasharray:{dashes}}}"
                ));
            }
        }
    }
    rules
}
