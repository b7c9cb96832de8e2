//! Functions with their own weight and with that of their callees, and one of them with its callers and callees; for
//! heap metrics and for CPU time.

use crate::columns::Columns;
use crate::{Style, cut_start, metric, plural, printable};
use mallow_base::{Frame, Percent};
use mallow_stacks::Metric;
use mallow_view::{FunctionRow, Peek, home, short_name};

/// Functions in a table.
pub(crate) const ROWS: usize = 25;
/// Rows of callers and of callees of a function.
const NEIGHBOURS: usize = 10;
/// The maximum number of functions with the same name that are shown with callers and callees.
const PEEKS: usize = 5;
/// Columns before a function's name.
const INDENT: usize = 40;
/// Columns of an additional metric.
const BESIDE: usize = 13;

/// How functions are shown.
#[derive(Clone, Copy)]
pub(crate) struct FunctionTable<M> {
    pub(crate) by: M,
    /// The value of `by` for the whole recording.
    pub(crate) whole: u64,
    /// An additional metric, of the function with its callees.
    pub(crate) beside: Option<M>,
    /// Whether names are shown with all of their arguments.
    pub(crate) is_whole: bool,
    pub(crate) style: Style,
}

impl<M: Metric> FunctionTable<M> {
    /// Returns a line for each function, and one for those that are not shown.
    pub(crate) fn lines(&self, rows: &[FunctionRow<'_, M::Weights>], limit: usize) -> Vec<String> {
        let beside = self.beside.map(|beside| format!("{:>BESIDE$}", beside.word())).unwrap_or_default();
        let heading = format!("{:>9} {:>7}  {:>9} {:>7}{beside}  function", "self", "", "children", "");
        let mut out = vec![self.style.dim(heading.trim_end())];
        out.extend(rows.iter().take(limit).map(|row| self.line(row)));
        if rows.is_empty() {
            out.push("nothing".to_owned());
        }
        let rest = rows.get(limit..).unwrap_or_default();
        if !rest.is_empty() {
            let own = rest.iter().fold(0, |sum: u64, row| sum.saturating_add(self.by.of_site(&row.own)));
            let more = plural(rest.len() as u64, "more function");
            let line = format!("{more} with {} not shown; use --top to see more", self.percent(own));
            out.push(self.style.dim(&line));
        }
        out
    }

    fn line(&self, row: &FunctionRow<'_, M::Weights>) -> String {
        let (own, under) = (self.by.of_site(&row.own), self.by.of_site(&row.under));
        let own = match own {
            0 => String::new(),
            own => format!("{:>9} {:>7}", metric(self.by, own), self.percent(own)),
        };
        let beside =
            self.beside.map(|beside| format!("{:>BESIDE$}", metric(beside, beside.of_site(&row.under))));
        let beside = beside.unwrap_or_default();
        let width = self.style.name_width(INDENT + beside.columns());
        format!(
            "{}  {:>9} {:>7}{beside}  {}",
            self.style.bold(&format!("{own:17}")),
            metric(self.by, under),
            self.percent(under),
            function_name(row.frame, row.is_nameless, self.is_whole, width)
        )
    }

    fn percent(&self, part: u64) -> String {
        Percent { part, whole: self.whole }.to_string()
    }

    /// Returns the function, its callers, and its callees; a limited number of each.
    pub(crate) fn peeks(
        &self,
        peeks: &[Peek<'_, M::Weights>],
        wanted: &str,
        limit: Option<usize>,
    ) -> Vec<String> {
        let mut out = Vec::new();
        for peek in peeks.iter().take(PEEKS) {
            out.extend(self.peek(peek, limit.unwrap_or(NEIGHBOURS)));
            out.push(String::new());
        }
        match peeks.len() {
            0 => out.push(format!("No function is called {}.", printable(wanted))),
            count if count > PEEKS => {
                let more = plural((count - PEEKS) as u64, "more function");
                out.push(format!("{more} of that name; a longer part of the name distinguishes them."));
            }
            _ => {
                out.pop();
            }
        }
        out
    }

    fn peek(&self, peek: &Peek<'_, M::Weights>, limit: usize) -> Vec<String> {
        let (own, under) = (self.by.of_site(&peek.own), self.by.of_site(&peek.under));
        let row = |part: u64, name: &str| {
            let of = Percent { part, whole: under }.to_string();
            format!("{:>11} {of:>7}  {name}", metric(self.by, part))
        };
        let width = self.style.name_width(22);
        let name = |frame: &Frame, width| {
            function_name(frame, frame.function.starts_with("0x"), self.is_whole, width)
        };
        let itself = match own {
            0 => "nothing itself".to_owned(),
            own => format!("{} itself", metric(self.by, own)),
        };
        let title = name(peek.frame, self.style.name_width(45));
        let mut out = vec![
            format!(
                "{}: {}, {}; {itself}",
                self.style.bold(&title),
                metric(self.by, under),
                self.percent(under)
            ),
            self.style.dim("called by"),
        ];
        let nobody = "none: it is the outermost call";
        let callers = peek.callers.iter().map(|(frame, weights)| {
            (self.by.of_site(weights), frame.map_or_else(|| nobody.to_owned(), |frame| name(frame, width)))
        });
        let callees =
            peek.callees.iter().map(|(frame, weights)| (self.by.of_site(weights), name(frame, width)));
        let list = |out: &mut Vec<String>, rows: Vec<(u64, String)>| {
            out.extend(rows.iter().take(limit).map(|(part, name)| row(*part, name)));
            let rest = rows.get(limit..).unwrap_or_default();
            if !rest.is_empty() {
                let part = rest.iter().fold(0, |sum: u64, row| sum.saturating_add(row.0));
                out.push(self.style.dim(&row(part, &format!("{} more", rest.len()))));
            }
        };
        list(&mut out, callers.collect());
        let callees: Vec<(u64, String)> = callees.collect();
        if !callees.is_empty() {
            out.push(self.style.dim("calls"));
            list(&mut out, callees);
        }
        out
    }
}

/// Formats `read_csv  [csv-app]` in at most `width` columns.
pub(crate) fn function_name(frame: &Frame, is_nameless: bool, is_whole: bool, width: usize) -> String {
    let without = frame.language.word().unwrap_or("code without a file");
    let module = home(frame).unwrap_or(without);
    if is_nameless {
        // Which file it is says more than that its functions have no names.
        let said =
            ["functions without names", "no names"].map(|what| printable(&format!("[{module}, {what}]")));
        let fits = said.iter().find(|text| text.columns() <= width);
        return fits.cloned().unwrap_or_else(|| cut_start(&said[1], width));
    }
    if is_whole {
        return printable(&format!("{}  [{module}]", frame.function));
    }
    let name = printable(&short_name(&frame.function));
    let module = format!("  [{}]", printable(module.trim_matches(['[', ']'])));
    if name.columns() + module.columns() <= width { name + &module } else { cut_start(&name, width) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_functions_have_no_names_is_named_in_any_width() {
        let frame = Frame {
            function: "0x1234".into(),
            module: Some("/usr/lib/libz.so.1".into()),
            ..Frame::default()
        };
        let name = |width| function_name(&frame, true, false, width);
        assert_eq!(name(40), "[libz.so.1, functions without names]");
        assert_eq!(name(27), "[libz.so.1, no names]");
        assert_eq!(name(12), "…, no names]");
    }
}
