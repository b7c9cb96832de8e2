//! Texts in the columns that a line has: cut, broken at blanks, and names of functions without their paths.

use unicode_width::UnicodeWidthStr;

/// The width of a text on a terminal.
pub(crate) trait Columns {
    /// Returns its columns: two for a Chinese or Japanese letter, none for a combining mark.
    fn columns(&self) -> usize;
}

impl Columns for str {
    fn columns(&self) -> usize {
        self.width()
    }
}

/// Truncates the end of a text that is too long for `width` columns.
pub fn cut_end(text: &str, width: usize) -> String {
    if text.columns() <= width {
        return text.to_owned();
    }
    let kept = part(text.char_indices().map(|(at, c)| at + c.len_utf8()), |end| &text[..end], width);
    format!("{}…", kept.trim_end())
}

/// Breaks a text at blanks into lines of at most `width` columns.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.columns() + 1 + word.columns() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Truncates the beginning of a text that is too long: the end of a function's name says more than its namespace.
pub fn cut_start(text: &str, width: usize) -> String {
    if text.columns() <= width {
        return text.to_owned();
    }
    let kept = part(text.char_indices().rev().map(|(at, _)| at), |begin| &text[begin..], width);
    format!("…{kept}")
}

/// Returns the longest of the growing parts of a text that leaves a column for an ellipsis.
fn part<'a>(places: impl Iterator<Item = usize>, of: impl Fn(usize) -> &'a str, width: usize) -> &'a str {
    places.map(of).take_while(|part| part.columns() < width).last().unwrap_or("")
}

/// A function's name in at most `width` columns. If it is too long it is [`shortened`], and then it loses its beginning.
pub(crate) fn fitted(name: &str, width: usize) -> String {
    if name.columns() <= width { name.to_owned() } else { cut_start(&shortened(name), width) }
}

/// A function's name without what a reader does without: of Rust's the paths of a type at its beginning, as in
/// `<Cart as Clone>::clone`, and of Python's that a function is within another one, as in `main.<listcomp>`.
pub(crate) fn shortened(name: &str) -> String {
    without_paths(&name.replace(".<locals>.", "."))
}

/// A name whose first pair of angle brackets has the last parts of its paths only.
fn without_paths(name: &str) -> String {
    let mut depth = 0_usize;
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(length.max(first.len_utf8()));
        match first {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (text.is_empty() || first == '>') {
            return text + rest;
        }
        let is_path = !path.starts_with("::");
        text.push_str(path.rsplit_once("::").filter(|_| is_path).map_or(path, |(_, last)| last));
        rest = behind;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut_end("µµµµ", 4), "µµµµ");
        assert_eq!(cut_end("µµµµµ", 4), "µµµ…");
        assert_eq!(cut_start("abcdef", 4), "…def");
        assert_eq!(cut_end("abc", 0), "…");
        assert_eq!((cut_end("日本語の道", 7).as_str(), "日本語…".columns()), ("日本語…", 7));
        assert_eq!((cut_start("日本語の道", 6).as_str(), cut_end("日本語の道", 10).columns()), ("…の道", 10));
    }

    #[test]
    fn a_name_that_is_too_long_is_shortened_before_it_loses_its_beginning() {
        for (name, width, expected) in [
            ("<shop::cart::Cart as core::clone::Clone>::clone", 40, "<Cart as Clone>::clone"),
            (
                "<shop::cart::Cart as core::clone::Clone>::clone",
                60,
                "<shop::cart::Cart as core::clone::Clone>::clone",
            ),
            (
                "<map::BTreeMap<…> as core::clone::Clone>::clone::inner",
                40,
                "<BTreeMap<…> as Clone>::clone::inner",
            ),
            (
                "<&str as <std::ffi::OsString>::push::SpecPush>::push",
                45,
                "<&str as <OsString>::push::SpecPush>::push",
            ),
            ("<shop::cart::Cart>::add", 12, "<Cart>::add"),
            ("<shop::cart::Cart>::add", 8, "…t>::add"),
            ("shop::cart::Cart::add", 12, "…::Cart::add"),
            ("operator<(a::B, c::D)", 12, "…a::B, c::D)"),
            ("<unfinished::name", 10, "<name"),
            ("Record.__init__.<locals>.<listcomp>", 35, "Record.__init__.<locals>.<listcomp>"),
            ("Record.__init__.<locals>.<listcomp>", 30, "Record.__init__.<listcomp>"),
            ("cached.<locals>.decorator.<locals>.wrapper", 40, "cached.decorator.wrapper"),
        ] {
            assert_eq!(fitted(name, width), expected, "{name}");
        }
    }
}
