//! The lines of a function with their weights, of any metric.

use crate::{Style, cut_end, cut_start, metric, plural, printable};
use mallow_base::Percent;
use mallow_stacks::Metric;
use mallow_view::AnnotatedFunction;

/// Context lines around lines with a weight.
const AROUND: u32 = 3;
/// The maximum number of functions with the same name.
const FUNCTIONS_MAX: usize = 5;

/// A function with the lines of its file, or a sentence that says why there are none.
pub type WithSource<W> = (AnnotatedFunction<W>, Result<Vec<String>, String>);

/// Returns functions with their source: the lines of a file, or a sentence that says why there are none.
pub fn annotated<M: Metric>(
    functions: &[WithSource<M::Weights>],
    by: M,
    whole: u64,
    wanted: &str,
    style: Style,
) -> String {
    let mut out = Vec::new();
    for (function, source) in functions.iter().take(FUNCTIONS_MAX) {
        if !out.is_empty() {
            out.push(String::new());
        }
        out.extend(heading(function, by, whole, style));
        out.extend(source.as_ref().err().cloned());
        out.push(style.dim(&format!("{:>9} {:>7}  {:>8}  {:>6}", "self", "", "children", "line")));
        match source {
            Ok(lines) => out.extend(with_source(function, lines, by, whole, style)),
            Err(_) => {
                out.extend(function.lines.iter().filter(|(line, _)| **line > 0).map(|(line, at)| {
                    row(by, whole, by.of_site(&at.own), by.of_site(&at.under), *line, "", style)
                }));
            }
        }
    }
    if functions.len() > FUNCTIONS_MAX {
        let more = plural((functions.len() - FUNCTIONS_MAX) as u64, "more function");
        out.push(format!(
            "\n{more} with \"{}\" in the name; give a longer name to see another.",
            printable(wanted)
        ));
    }
    if functions.is_empty() {
        out.push(format!("No function on any stack has \"{}\" in its name.", printable(wanted)));
    }
    out.join("\n") + "\n"
}

fn heading<M: Metric>(
    function: &AnnotatedFunction<M::Weights>,
    by: M,
    whole: u64,
    style: Style,
) -> Vec<String> {
    let share = |part| format!("{} {}", metric(by, part), Percent { part, whole });
    let (own, under) = (by.of_site(&function.whole.own), by.of_site(&function.whole.under));
    let name = cut_start(&printable(&function.function), style.width);
    let file = function.file.as_deref().unwrap_or("its file is not known");
    vec![
        style.bold(&name),
        cut_start(&printable(file), style.width),
        format!("self {}, with callees {} ({})", share(own), share(under), by.word()),
    ]
}

fn row<M: Metric>(by: M, whole: u64, own: u64, under: u64, line: u32, text: &str, style: Style) -> String {
    let percent = |part: u64| if part == 0 { String::new() } else { Percent { part, whole }.to_string() };
    let value = if own == 0 { String::new() } else { metric(by, own) };
    let front = format!("{value:>9} {:>7}  {:>8}  {line:>6}  ", percent(own), percent(under));
    let text = printable(&text.replace('\t', "    "));
    let text = cut_end(text.trim_end(), style.width.saturating_sub(front.chars().count()));
    format!("{front}{text}").trim_end().to_owned()
}

fn with_source<M: Metric>(
    function: &AnnotatedFunction<M::Weights>,
    source: &[String],
    by: M,
    whole: u64,
    style: Style,
) -> Vec<String> {
    let weights = |line: u32| {
        let at = function.lines.get(&line);
        at.map_or((0, 0), |at| (by.of_site(&at.own), by.of_site(&at.under)))
    };
    let (mut out, mut last) = (Vec::new(), 0);
    let is_near = |line: u32| {
        function
            .lines
            .range(line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND))
            .next()
            .is_some()
    };
    for (number, text) in (1_u32..).zip(source) {
        if !is_near(number) {
            continue;
        }
        if last > 0 && number > last + 1 {
            out.push(style.dim(&format!("{:>36}", "…")));
        }
        last = number;
        let (own, under) = weights(number);
        out.push(row(by, whole, own, under, number, text, style));
    }
    let beyond = function.lines.range(source.len() as u32 + 1..).count();
    if beyond > 0 {
        out.push(format!(
            "{} behind the file's end: it is not the one that was compiled.",
            plural(beyond as u64, "line")
        ));
    }
    let unknown = function.lines.get(&0).map_or(0, |at| by.of_site(&at.under));
    if unknown > 0 {
        out.push(format!("{} at lines that are not known.", metric(by, unknown)));
    }
    out
}
