//! The guide's Markdown: the table that says which pages there are, and links, which lead elsewhere in the site than in the repository.

use std::path::{Component, Path, PathBuf};

/// A page of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chapter {
    pub(super) title: String,
    /// Its file in the guide's folder.
    pub(super) file: String,
}

/// The rows of the table, whose first cell is a link to a page: `| [record](record.md) | how … |`.
pub(super) fn chapters(index: &str) -> Vec<Chapter> {
    let rows = index.lines().filter_map(|line| line.strip_prefix("| [")?.split_once(") | "));
    let links = rows.filter_map(|(link, _)| link.split_once("]("));
    let pages = links.filter(|(_, file)| file.ends_with(".md") && !file.contains(['/', ')']));
    pages.map(|(title, file)| Chapter { title: title.to_owned(), file: file.to_owned() }).collect()
}

/// mdBook's list of pages.
pub(super) fn summary(chapters: &[Chapter]) -> String {
    let rows = chapters.iter().map(|Chapter { title, file }| format!("- [{title}]({file})\n"));
    format!("# Summary\n\n[The guide](README.md)\n\n{}", rows.collect::<String>())
}

/// A page with links as the site needs them. A link to what the site does not have is its words alone.
pub(super) fn with_links_of_the_site(text: &str) -> String {
    let mut is_block = false;
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        out += &if is_block || is_fence { line.to_owned() } else { of_line(line) };
    }
    out
}

/// Targets of all links.
#[cfg(test)]
pub(super) fn targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        let mut rest = if is_block || is_fence { "" } else { line };
        while let Some(link) = Link::first(rest) {
            targets.push(link.target.to_owned());
            rest = link.after;
        }
    }
    targets
}

/// `before[words](target)after`
struct Link<'a> {
    before: &'a str,
    words: &'a str,
    target: &'a str,
    after: &'a str,
}

impl<'a> Link<'a> {
    fn first(text: &'a str) -> Option<Link<'a>> {
        let (head, rest) = text.split_once("](")?;
        let (target, after) = rest.split_once(')')?;
        // Brackets within the words are closed within them.
        let mut depth = 0_usize;
        let open = head.char_indices().rev().find(|(_, letter)| {
            let is_outer = *letter == '[' && depth == 0;
            match letter {
                ']' => depth += 1,
                '[' => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_outer
        });
        let (before, words) = open.map_or((head, ""), |(at, _)| (&head[..at], &head[at + 1..]));
        Some(Link { before, words, target, after })
    }
}

fn of_line(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(Link { before, words, target, after }) = Link::first(rest) {
        out += before;
        match of_site(target) {
            Some(target) => out += &format!("[{words}]({target})"),
            None => out += words,
        }
        rest = after;
    }
    out + rest
}

/// Where a link of a page leads in the site; none where that is not in it.
fn of_site(target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('#') {
        return Some(target.to_owned());
    }
    let (path, heading) =
        target.split_once('#').map_or((target, ""), |(path, _)| (path, &target[path.len()..]));
    let path = in_repository(path)?;
    let page = path.strip_prefix(super::GUIDE).ok().map(Path::to_owned);
    let beside = super::BESIDE.iter().find_map(|name| {
        let file = path.strip_prefix("docs").ok()?;
        (file.starts_with(name) && file != Path::new(name)).then(|| file.to_owned())
    });
    Some(format!("{}{heading}", page.or(beside)?.display()))
}

/// A path from the guide's folder as one from the repository's.
fn in_repository(path: &str) -> Option<PathBuf> {
    let mut out = PathBuf::from(super::GUIDE);
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => out.pop().then_some(())?,
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_order_of_the_pages() {
        let index = "| question | page |\n|---|---|\n| why? | [soak](soak.md) |\n\n| page | question |\n|---|---|\n\
            | [in CI](ci.md) | how? |\n| [soak: verdicts](soak-verdicts.md) | how [often](x.md)? |\n";
        let chapters = chapters(index);
        assert_eq!(
            summary(&chapters),
            "# Summary\n\n[The guide](README.md)\n\n- [in CI](ci.md)\n- [soak: verdicts](soak-verdicts.md)\n"
        );
    }

    #[test]
    fn links_lead_to_what_the_site_has_or_are_words() {
        let page = "[a](b.md#c), ![p](../images/p.svg) and [`docs/schema`](../schema), [s](../schema/s.json)\n\
            [x [y]](../../programs/gate) [web](https://x.example/) [here](#d)\n```\n[no](../../link)\n```\n";
        assert_eq!(
            with_links_of_the_site(page),
            "[a](b.md#c), ![p](images/p.svg) and `docs/schema`, [s](schema/s.json)\n\
             x [y] [web](https://x.example/) [here](#d)\n```\n[no](../../link)\n```\n"
        );
        assert_eq!(targets(page).len(), 7);
    }
}
