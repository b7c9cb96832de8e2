//! Stacks without what they contain of a machine: the folders of its files.
//!
//! Names of functions, of source files and of libraries stay, without folders, and so do build ids.

use crate::Stacks;
use mallow_base::Frame;

impl Stacks {
    /// Leaves of all paths the last name alone.
    pub fn redact(&mut self) {
        self.modules.iter_mut().for_each(|module| module.path = base_name(&module.path));
        let frames = self.locations.iter_mut().flat_map(|location| &mut location.frames);
        frames.for_each(redact_frame);
    }
}

fn redact_frame(frame: &mut Frame) {
    frame.function = without_folders(&frame.function);
    for path in [&mut frame.file, &mut frame.module].into_iter().flatten() {
        // Files that a runtime has within itself are called by what looks like a path.
        if !path.starts_with("node:") && !path.starts_with('<') {
            *path = base_name(path);
        }
    }
}

/// The last name of a path.
pub fn base_name(path: &str) -> String {
    path.rsplit('/').find(|name| !name.is_empty()).unwrap_or_default().to_owned()
}

/// A text whose absolute paths have no folders any more. A slash within a word is none of a path: `operator/`, `net/http.Get`.
pub fn without_folders(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "()[]{}<>\"'`,;=|".contains(c);
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let before = rest[..at].chars().next_back();
        let end = rest[at..].find(is_end).map_or(rest.len(), |behind| at + behind);
        kept.push_str(&rest[..at]);
        match before {
            Some(c) if c.is_alphanumeric() || "_.-~".contains(c) => {
                kept.push('/');
                rest = &rest[at + 1..];
            }
            // A division.
            _ if end == at + 1 => {
                kept.push('/');
                rest = &rest[end..];
            }
            _ => {
                kept.push_str(&base_name(&rest[at..end]));
                rest = &rest[end..];
            }
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_folders_and_names_stay() {
        for (text, left) in [
            ("main", "main"),
            ("operator/(A const&, B const&)", "operator/(A const&, B const&)"),
            ("net/http.(*conn).serve", "net/http.(*conn).serve"),
            ("a / b", "a / b"),
            ("py::work:/srv/eve/app.py", "py::work:app.py"),
            ("load (/srv/eve/a b.js:1:2)", "load (a b.js:1:2)"),
            ("file:///srv/eve/app.js", "file:app.js"),
            ("{closure} /srv/x/", "{closure} x"),
        ] {
            assert_eq!(without_folders(text), left);
        }
        for (path, left) in
            [("/usr/bin/app", "app"), ("src/main.c", "main.c"), ("/", ""), ("", ""), ("[vdso]", "[vdso]")]
        {
            assert_eq!(base_name(path), left);
        }
    }
}
