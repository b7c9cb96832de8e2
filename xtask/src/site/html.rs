//! Checks the pages that came out: links lead to a file of the site and to an element of it, and nothing is loaded from elsewhere.

use super::files::cannot;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A server shows it for any path, so its own links are from the site's root.
const NOT_FOUND: &str = "404.html";

/// One sentence for each link that leads nowhere.
pub(super) fn check(folder: &Path) -> Result<Vec<String>, String> {
    let mut files = BTreeMap::new();
    collect(folder, Path::new(""), &mut files)?;
    let mut findings = Vec::new();
    for (path, text) in &files {
        let is_page = path.extension().is_some_and(|ending| ending == "html") && path != Path::new(NOT_FOUND);
        if !is_page {
            continue;
        }
        let links = attributes(text, "href").map(|target| (target, false));
        for (target, is_loaded) in links.chain(attributes(text, "src").map(|target| (target, true))) {
            if let Some(what) = problem(&files, path, &target, is_loaded) {
                findings.push(format!("{}: `{target}` {what}", path.display()));
            }
        }
    }
    Ok(findings)
}

/// Every file below a folder with its text, which is empty where it is none.
fn collect(folder: &Path, place: &Path, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let below = folder.join(place);
    let entries = fs::read_dir(&below).map_err(|error| cannot("read", &below, &error))?;
    for entry in entries.flatten() {
        let path = place.join(entry.file_name());
        if entry.path().is_dir() {
            collect(folder, &path, files)?;
        } else {
            let bytes = fs::read(entry.path()).map_err(|error| cannot("read", &entry.path(), &error))?;
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
    }
    Ok(())
}

/// Values of an attribute, wherever it is.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = String> + 'a {
    let start = format!(" {name}=\"");
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(start.as_str())?;
        let (value, after) = after.split_once('"')?;
        rest = after;
        Some(value.replace("&amp;", "&"))
    })
}

fn problem(
    files: &BTreeMap<PathBuf, String>,
    page: &Path,
    target: &str,
    is_loaded: bool,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("//") {
        return is_loaded.then_some("is loaded from another machine.");
    }
    if target.starts_with("data:") || target.starts_with("javascript:") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = path.split('?').next().unwrap_or_default();
    let to = if path.is_empty() { page.to_owned() } else { beside(page, path) };
    let Some(text) = files.get(&to) else { return Some("leads nowhere.") };
    let ids: BTreeSet<String> =
        if heading.is_empty() { BTreeSet::new() } else { attributes(text, "id").collect() };
    (!heading.is_empty() && !ids.contains(heading)).then_some("leads to no place of its page.")
}

fn beside(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => _ = path.pop(),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::files::write;
    use super::*;

    #[test]
    fn what_leads_nowhere_or_elsewhere_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let page = "<link href=\"css/a.css?v=1\"><script src=\"https://cdn.example/x.js\"></script><a href=\"b.html#here\">\
            <a href=\"b.html#gone\"><a href=\"gone.html\"><a href=\"https://x.example/\"><a href=\"#own\"><p id=\"own\">";
        for (name, text) in [
            ("a.html", page),
            ("b.html", "<h2 id=\"here\"><a href=\"../outside\">"),
            ("css/a.css", ""),
            (NOT_FOUND, "<a href=\"gone\">"),
        ] {
            write(&folder.path().join(name), text.as_bytes()).unwrap();
        }
        let found = check(folder.path()).unwrap();
        assert_eq!(
            found,
            [
                "a.html: `b.html#gone` leads to no place of its page.",
                "a.html: `gone.html` leads nowhere.",
                "a.html: `https://cdn.example/x.js` is loaded from another machine.",
                "b.html: `../outside` leads nowhere.",
            ]
        );
    }
}
