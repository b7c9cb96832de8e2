//! What is written in a box and beside it.

use crate::FlameGraph;
use crate::kept::KeptBox;
use mallow_base::{Language, Percent, grouped};
use mallow_stacks::{FlameWeight, Flames};

/// Places of a box that are named one by one.
pub(crate) const PLACES_MAX: usize = 3;

/// What a graph's figures are called.
pub(crate) struct Words<'a> {
    graph: &'a FlameGraph,
    flames: &'a Flames,
    whole: FlameWeight,
}

impl<'a> Words<'a> {
    pub(crate) fn of(graph: &'a FlameGraph, flames: &'a Flames, whole: FlameWeight) -> Words<'a> {
        Words { graph, flames, whole }
    }

    pub(crate) fn name(&self, of: &KeptBox<'_>) -> &'a str {
        of.this.function.map_or("all", |function| &self.flames.functions[function.0 as usize].name)
    }

    pub(crate) fn language(&self, of: &KeptBox<'_>) -> Language {
        of.this
            .function
            .map_or(Language::Native, |function| self.flames.functions[function.0 as usize].language)
    }

    /// What stands behind the name where there is room: `12.3 MiB, 25.0%`, or `+1.2 MiB`.
    pub(crate) fn values(&self, of: &KeptBox<'_>) -> String {
        let FlameWeight { before, after } = of.weight;
        let language = language_name(self.language(of)).map(|name| format!(" · {name}")).unwrap_or_default();
        match (self.graph.is_compared, before, after) {
            (false, ..) => format!("{}, {}{language}", self.written(after), share(after, self.whole.after)),
            (true, 0, _) => format!("{}, new", self.difference(of.weight)),
            (true, _, 0) => format!("{}, gone", self.difference(of.weight)),
            (true, before, after) if before == after => "as before".to_owned(),
            (true, ..) => self.difference(of.weight),
        }
    }

    /// Its name, and how often it stands on a stack.
    pub(crate) fn label(&self, of: &KeptBox<'_>) -> String {
        match of.this.times {
            0 | 1 => self.name(of).to_owned(),
            times => format!("{} × {}", self.name(of), grouped(times.into())),
        }
    }

    /// All that is known of a box, line by line.
    pub(crate) fn title(&self, of: &KeptBox<'_>) -> String {
        let language = language_name(self.language(of)).map(|name| format!(" · {name}")).unwrap_or_default();
        let mut lines = vec![self.label(of) + &language];
        if self.graph.is_compared {
            lines.push(format!("{}: {}", self.both(of.weight), self.judged(of.weight)));
            if of.this.own != FlameWeight::default() && of.this.own != of.weight {
                lines.push(format!("itself {}: {}", self.both(of.this.own), self.judged(of.this.own)));
            }
        } else {
            let of_whole =
                |value: u64| format!("{}, {}", self.counted(value), share(value, self.whole.after));
            let own = match of.this.own.after {
                0 => String::new(),
                own if own == of.weight.after => ", all of it its own".to_owned(),
                own => format!("; itself {}", of_whole(own)),
            };
            lines.push(of_whole(of.weight.after) + &own);
        }
        if of.this.times > 1 {
            lines.push(format!("stands up to {} times on a stack", grouped(of.this.times.into())));
        }
        lines.extend(self.places(of));
        lines.join("\n")
    }

    /// `374,540 allocations before, 45 after`.
    fn both(&self, weight: FlameWeight) -> String {
        format!("{} before, {} after", self.counted(weight.before), self.graph.unit.written(weight.after))
    }

    /// `+1.2 MiB, +5.7%`.
    fn judged(&self, weight: FlameWeight) -> String {
        let difference = self.difference(weight);
        match (weight.before, weight.after) {
            (0, _) => format!("{difference}, new"),
            (_, 0) => format!("{difference}, gone"),
            (before, after) if before == after => "no difference".to_owned(),
            (before, after) => {
                let percent = (after as f64 - before as f64) * 100.0 / before as f64;
                format!("{difference}, {}{:.1}%", sign(weight), percent.abs())
            }
        }
    }

    /// `+1.2 MiB`.
    fn difference(&self, weight: FlameWeight) -> String {
        let FlameWeight { before, after } = weight;
        format!("{}{}", sign(weight), self.graph.unit.written(after.abs_diff(before)))
    }

    /// `12.3 MiB`, `12`.
    pub(crate) fn written(&self, value: u64) -> String {
        self.graph.unit.written(value)
    }

    /// `12.3 MiB`, `12 allocations`.
    fn counted(&self, value: u64) -> String {
        let written = self.graph.unit.written(value);
        match self.graph.counted.as_str() {
            "" => written,
            what => format!("{written} {what}"),
        }
    }

    /// Where it was: a line each.
    fn places(&self, of: &KeptBox<'_>) -> Vec<String> {
        let places = of.this.places();
        let named = places.iter().take(PLACES_MAX).map(|(id, _)| self.flames.places[id.0 as usize].clone());
        let mut lines: Vec<String> = named.collect();
        if let Some(more) = places.len().checked_sub(PLACES_MAX).filter(|more| *more > 0) {
            lines.push(format!("and {more} more places"));
        }
        lines
    }
}

/// A share of the whole; what is not nothing is not written as nothing.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match (Percent { part, whole }).to_string() {
        text if text == "0.0%" && part > 0 => "<0.1%".to_owned(),
        text => text,
    }
}

/// A minus that is as wide as a plus.
fn sign(weight: FlameWeight) -> &'static str {
    match weight.after.cmp(&weight.before) {
        std::cmp::Ordering::Less => "−",
        std::cmp::Ordering::Equal => "±",
        std::cmp::Ordering::Greater => "+",
    }
}

/// What people call a language that is none of machine code.
pub(crate) fn language_name(language: Language) -> Option<&'static str> {
    match language {
        Language::Native => None,
        Language::Python => Some("Python"),
        Language::Ruby => Some("Ruby"),
        Language::JavaScript => Some("JavaScript"),
        Language::Java => Some("Java"),
    }
}
