//! What suppressions took from the leaks, and the list of those that are built in.

use super::Page;
use crate::{Style, cut_end, plural, printable, wrapped};
use mallow_base::Bytes;
use mallow_profile::{KNOWN_LEAKS, LibraryLeak, Suppression};
use mallow_view::{SuppressedBy, SuppressedLeaks};

impl Page<'_> {
    /// Formats `suppressed: 3 sites, 1.2 KiB in 4 blocks by leak:foo (2), the time zone (1)`.
    pub(super) fn suppressed_line(&self) -> Option<String> {
        let SuppressedLeaks { sites, bytes, blocks, by } = &self.suppressed;
        if *sites == 0 {
            return None;
        }
        let mut used: Vec<(String, SuppressedBy)> = Vec::new();
        for (by, one) in by.iter().zip(&self.subject.suppressions.suppressions).filter(|(by, _)| by.sites > 0)
        {
            let name = name(one);
            match used.iter_mut().find(|(other, _)| *other == name) {
                Some((_, sum)) => {
                    sum.sites += by.sites;
                    sum.bytes = sum.bytes.saturating_add(by.bytes);
                    sum.blocks = sum.blocks.saturating_add(by.blocks);
                }
                None => used.push((name, *by)),
            }
        }
        used.sort_by_key(|(_, by)| std::cmp::Reverse((by.bytes, by.blocks)));
        let by: Vec<String> = used.iter().map(|(name, by)| format!("{name} ({})", by.sites)).collect();
        let what = format!("{} in {}", Bytes(*bytes), plural(*blocks, "block"));
        let line = format!("suppressed: {}, {what} by {}", plural(*sites as u64, "site"), by.join(", "));
        Some(cut_end(&line, self.style.width))
    }
}

/// Returns what a suppression is called: its line, or what a rule that is built in is for.
fn name(suppression: &Suppression) -> String {
    match suppression.known {
        Some(known) => known.what.to_owned(),
        None => format!("leak:{}", printable(&suppression.pattern)),
    }
}

/// The rules that are built in, for `--list-default-suppressions`.
pub fn known_leaks(style: Style) -> String {
    let introduction = "What these libraries allocate once and keep to the end is no leak of the program. It is left out of the leaked table, and its \
                        sums are below the heading; --no-default-suppressions shows it. All frames from the allocation up to one that fits a pattern \
                        have to be of the libraries that a rule names.";
    let mut lines = wrapped(introduction, style.width);
    for known in KNOWN_LEAKS {
        lines.push(String::new());
        lines.push(style.bold(known.what));
        for (label, text) in parts(known) {
            let text = wrapped(&text, style.width.saturating_sub(INDENT));
            let labels = std::iter::once(label).chain(std::iter::repeat(""));
            lines.extend(text.iter().zip(labels).map(|(line, label)| format!("  {label:<12}{line}")));
        }
    }
    lines.join("\n") + "\n"
}

/// Columns in front of a rule's text.
const INDENT: usize = 14;

fn parts(known: &LibraryLeak) -> Vec<(&'static str, String)> {
    let mut parts = vec![("patterns", known.patterns.join(" ")), ("libraries", known.libraries.join(" "))];
    if !known.innermost.is_empty() {
        parts.push(("innermost", known.innermost.join(" ")));
    }
    parts.push(("at most", plural(known.blocks_max, "block")));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_listed_with_its_patterns() {
        let text = known_leaks(Style::PLAIN);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for known in KNOWN_LEAKS {
            assert!(text.contains(&format!("\n{}\n", known.what)), "{}", known.what);
            assert!(known.patterns.iter().all(|pattern| text.contains(pattern)), "{}", known.what);
        }
        assert!(text.contains(
            "\nbuffers of stdio\n  patterns    ^_IO_file_doallocate$\n  libraries   libc.so. libc-2.\n  at most     3 blocks\n"
        ), "{text}");
    }
}
