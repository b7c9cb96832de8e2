//! A benchmark as Markdown, for a comment on a change.

use super::exports::{SortOrder, TableForm, table};
use super::{Page, sentences};
use crate::markdown;

/// Returns the verdicts, a table of times, and everything else collapsed.
pub fn markdown(page: &Page<'_>) -> String {
    let mut text = String::from("### mallow bench\n\n");
    for verdict in sentences::verdicts(page.session, true) {
        let (first, others) =
            verdict.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
        text += &format!(
            "**{}** {}\n\n",
            markdown::inline(first, usize::MAX),
            markdown::inline(&others.join(" "), usize::MAX)
        );
    }
    for row in page.limits {
        text += &format!("- {}\n", markdown::inline(&super::limits::sentence(row), usize::MAX));
    }
    if !page.limits.is_empty() {
        text.push('\n');
    }
    text += &table(page.session, TableForm::Markdown, page.unit, true, SortOrder::Auto);
    text += "\n";
    text += &markdown::folded("all metrics", false, &page.text(markdown::STYLE));
    text
}
