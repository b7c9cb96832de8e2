//! Files and libraries as two builds have them in common.
//!
//! A source file is known by the end of its path, because builds stand in different folders; a library by its
//! name without its version.

use rustc_hash::FxHashMap;

/// With more files of one name on each side, only their name is compared.
const SAME_NAME_MAX: usize = 512;

/// A library's or program's name without folder, version and Rust's hash: `libfoo.so.1.2`, `libfoo-1.2.so`
/// are `libfoo.so`.
pub(super) fn module(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((stem, version)) = name.split_once(".so") else { return name.to_owned() };
    if !(version.is_empty() || version.starts_with('.')) {
        return name.to_owned();
    }
    let is_version = |text: &str| {
        // A bare number may be part of the name: ld-linux-x86-64.so.
        let is_number = text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        is_number || (text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    match stem.rsplit_once('-') {
        Some((library, version)) if is_version(version) => format!("{library}.so"),
        _ => format!("{stem}.so"),
    }
}

/// For every path of both sides the name under which it is compared. A file that is in different folders on both
/// sides gets the common end of both paths; if several files share a name, those with the longest common end belong
/// together.
pub(super) struct Files<'a> {
    before: FxHashMap<&'a str, String>,
    after: FxHashMap<&'a str, String>,
}

impl<'a> Files<'a> {
    /// Compares the paths of two sides, each in a fixed order and without repetition.
    pub(super) fn of(before: &[&'a str], after: &[&'a str]) -> Self {
        let mut files = Self { before: FxHashMap::default(), after: FxHashMap::default() };
        let mut by_name: FxHashMap<&str, (Vec<&'a str>, Vec<&'a str>)> = FxHashMap::default();
        for path in before {
            by_name.entry(base_name(path)).or_default().0.push(path);
        }
        for path in after {
            by_name.entry(base_name(path)).or_default().1.push(path);
        }
        for (name, (before, after)) in by_name {
            files.join(name, &before, &after);
        }
        files
    }

    /// The name of a path of the side before.
    pub(super) fn before(&self, path: &str) -> &str {
        self.before.get(path).map_or("", String::as_str)
    }

    /// The name of a path of the side after.
    pub(super) fn after(&self, path: &str) -> &str {
        self.after.get(path).map_or("", String::as_str)
    }

    fn join(&mut self, name: &str, before: &[&'a str], after: &[&'a str]) {
        let is_one = before.len() <= 1 && after.len() <= 1;
        if is_one || before.len() > SAME_NAME_MAX || after.len() > SAME_NAME_MAX {
            self.before.extend(before.iter().map(|path| (*path, name.to_owned())));
            self.after.extend(after.iter().map(|path| (*path, name.to_owned())));
            return;
        }
        let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
        for (b, path) in before.iter().enumerate() {
            pairs.extend(after.iter().enumerate().map(|(a, other)| (common_end(path, other), b, a)));
        }
        pairs.sort_by_key(|&(length, b, a)| (std::cmp::Reverse(length), b, a));
        for (length, b, a) in pairs {
            if !self.before.contains_key(before[b]) && !self.after.contains_key(after[a]) {
                // The pair's own number keeps apart two pairs that have the same end in common.
                let end = format!("{} {b}", ending(before[b], length));
                self.before.insert(before[b], end.clone());
                self.after.insert(after[a], end);
            }
        }
        for path in before {
            self.before.entry(path).or_insert_with(|| format!("{path} before"));
        }
        for path in after {
            self.after.entry(path).or_insert_with(|| format!("{path} after"));
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns how many components two paths have in common, counted from the end.
fn common_end(a: &str, b: &str) -> usize {
    a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count()
}

/// The last components of a path.
fn ending(path: &str, components: usize) -> &str {
    match path.rmatch_indices('/').nth(components.saturating_sub(1)) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_lose_folder_and_version() {
        for (path, name) in [
            ("/usr/lib/libz.so.1.2.13", "libz.so"),
            ("libz-1.2.so", "libz.so"),
            ("/usr/lib/libstdc++.so.6", "libstdc++.so"),
            ("/rust/lib/libstd-0123456789abcdef.so", "libstd.so"),
            ("ld-linux-x86-64.so.2", "ld-linux-x86-64.so"),
            ("/usr/bin/python3.11", "python3.11"),
            ("/opt/my.soup", "my.soup"),
        ] {
            assert_eq!(module(path), name, "{path}");
        }
    }

    #[test]
    fn a_file_that_stands_alone_is_known_by_its_name() {
        let files = Files::of(&["/old/src/main.c"], &["/new/source/main.c", "/new/b.c"]);
        assert_eq!(
            (files.before("/old/src/main.c"), files.after("/new/source/main.c")),
            ("main.c", "main.c")
        );
        assert_eq!(files.after("/new/b.c"), "b.c");
    }

    #[test]
    fn files_of_one_name_are_joined_by_the_longest_end() {
        let before = ["/v1/src/io/mod.rs", "/v1/src/net/mod.rs", "/v1/src/gone/mod.rs"];
        let after = ["/build/v2/src/net/mod.rs", "/build/v2/src/io/mod.rs"];
        let files = Files::of(&before, &after);
        assert_eq!(files.before(before[0]), files.after(after[1]));
        assert_eq!(files.before(before[1]), files.after(after[0]));
        assert_ne!(files.before(before[0]), files.before(before[1]));
        assert_eq!(files.before(before[2]), "/v1/src/gone/mod.rs before");
    }
}
