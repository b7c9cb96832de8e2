//! Markdown for a comment on a change: what may stand in a line, and what is folded.

use crate::{Style, cut_end, printable};

/// Servers cut or refuse more than 65,536 characters; what follows this may be short.
pub(crate) const BYTES_MAX: usize = 60_000;
/// The style of what is folded.
pub(crate) const STYLE: Style = Style { width: 100, ..Style::PLAIN };

/// A text as code in a line, of at most so many columns.
pub(crate) fn code(text: &str, width: usize) -> String {
    format!("`{}`", cut_end(&printable(text), width).replace('`', "'"))
}

/// A text as code in a table's cell.
pub(crate) fn code_cell(text: &str, width: usize) -> String {
    code(text, width).replace('|', "\\|")
}

/// A text in a line, of which nothing is taken for HTML or Markdown.
pub(crate) fn inline(text: &str, width: usize) -> String {
    let text = escaped(&cut_end(&printable(text), width));
    text.replace('*', "&#42;").replace('_', "&#95;").replace('`', "&#96;")
}

/// A text within HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A text below a summary, which is HTML; its last line is ended.
pub(crate) fn folded(summary: &str, is_open: bool, text: &str) -> String {
    let open = if is_open { " open" } else { "" };
    let text = text.replace("```", "'''");
    format!("<details{open}><summary>{summary}</summary>\n\n```text\n{text}```\n</details>\n")
}

/// The first letter as a capital.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
