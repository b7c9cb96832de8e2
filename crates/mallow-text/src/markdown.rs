//! Markdown for a comment on a change: escaping, and collapsed parts.

use crate::{Style, cut_end, printable};

/// Servers truncate or refuse more than 65,536 characters; only short text may follow after this number.
pub(crate) const BYTES_MAX: usize = 60_000;
/// The style of collapsed parts.
pub(crate) const STYLE: Style = Style { width: 100, ..Style::PLAIN };

/// Formats a text as inline code, with at most `width` columns.
pub(crate) fn code(text: &str, width: usize) -> String {
    format!("`{}`", cut_end(&printable(text), width).replace('`', "'"))
}

/// Formats a text as code in a table's cell.
pub(crate) fn code_cell(text: &str, width: usize) -> String {
    code(text, width).replace('|', "\\|")
}

/// Formats a text in a line, and escapes HTML and Markdown.
pub(crate) fn inline(text: &str, width: usize) -> String {
    let text = escaped(&cut_end(&printable(text), width));
    text.replace('*', "&#42;").replace('_', "&#95;").replace('`', "&#96;")
}

/// Escapes a text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns a collapsed part: a text below a summary, which is HTML; the last line is terminated.
pub(crate) fn folded(summary: &str, is_open: bool, text: &str) -> String {
    let open = if is_open { " open" } else { "" };
    let text = text.replace("```", "'''");
    format!("<details{open}><summary>{summary}</summary>\n\n```text\n{text}```\n</details>\n")
}

/// Capitalises the first letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
