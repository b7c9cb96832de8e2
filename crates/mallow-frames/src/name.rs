//! How a frame is written for people: `function (file:line)`, without what only a compiler needs.
//!
//! Left out are template and generic arguments (shown as `<…>`), C++ parameter lists and return types, and the hashes
//! that Rust adds to crates and functions. The whole names stay in the profile and in JSON.

use crate::sources;
use mallow_base::Frame;

/// `reader.rs:12`, or `[libfoo.so.1]` where there is no line, or nothing for code made at run time.
pub fn place(frame: &Frame) -> String {
    match (&frame.file, frame.line, &frame.module) {
        (Some(file), line, _) => in_file(telling_path(file), line),
        // What is no file, such as the kernel, stands in brackets already.
        (None, _, Some(module)) if module.starts_with('[') => module.to_owned(),
        (None, _, Some(module)) => format!("[{}]", base_name(module)),
        (None, _, None) => String::new(),
    }
}

/// As [`place`], with the path as it is from the current folder, where it is known: `src/reader.rs:12`.
pub fn place_here(frame: &Frame) -> Option<String> {
    let file = frame.file.as_deref().and_then(sources::named)?;
    Some(in_file(&file, frame.line))
}

fn in_file(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) => format!("({file}:{line})"),
        None => format!("({file})"),
    }
}

/// `reader.rs:12 in libfoo.so.1`, as much of it as is known; without the folders of the machine that it was built or run on.
pub fn whole_place(frame: &Frame) -> Option<String> {
    let file = frame.file.as_deref().map(telling_path).map(|file| match frame.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    });
    let module = frame.module.as_deref().map(base_name);
    match (file, module) {
        (Some(file), Some(module)) => Some(format!("{file} in {module}")),
        (None, Some(module)) => Some(format!("in {module}")),
        (file, None) => file,
    }
}

/// Where a function is at home: its executable or library, or the file of a script; none for code made at run time.
pub fn home(frame: &Frame) -> Option<&str> {
    let file = frame.file.as_deref().filter(|_| frame.is_script()).map(telling_path);
    file.or_else(|| frame.module.as_deref().map(base_name))
}

/// The end of a path from the first component that tells something: many files are called `mod.rs` or lie in `src`.
pub fn telling_path(path: &str) -> &str {
    const ALIKE: [&str; 14] = [
        "mod.rs",
        "lib.rs",
        "impls.rs",
        "traits.rs",
        "types.rs",
        "util.rs",
        "utils.rs",
        "error.rs",
        "__init__.py",
        "index.js",
        "index.ts",
        "src",
        "lib",
        "include",
    ];
    let mut start = path.len();
    loop {
        let folder = path[..start].trim_end_matches('/');
        let begin = folder.rfind('/').map_or(0, |at| at + 1);
        if begin >= folder.len() {
            return &path[start..];
        }
        start = begin;
        if begin == 0 || !ALIKE.contains(&&path[begin..folder.len()]) {
            return &path[start..];
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// A function's name without arguments, return type and hashes.
pub fn short_name(name: &str) -> String {
    let name = without_crate_hashes(without_function_hash(name));
    let (text, had_parameters) = elide(&name);
    if had_parameters { without_return_type(&text).to_owned() } else { text }
}

/// Cuts `::h` and 16 hexadecimal digits, the suffix of Rust's legacy mangling.
fn without_function_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => rest,
        _ => name,
    }
}

/// Cuts `[8a55d2…]` behind crate names, the disambiguators of Rust's v0 mangling.
fn without_crate_hashes(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let inside = rest[open + 1..].split(']').next().unwrap_or_default();
        let is_hash = inside.len() >= 8
            && inside.bytes().all(|b| b.is_ascii_hexdigit())
            && rest[..open].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        text.push_str(&rest[..open]);
        if is_hash {
            rest = rest[open + 1 + inside.len()..].strip_prefix(']').unwrap_or_default();
        } else {
            text.push('[');
            rest = &rest[open + 1..];
        }
    }
    text.push_str(rest);
    text
}

/// Replaces template arguments by `<…>` and drops parameter lists with what follows them; tells whether it found
/// a parameter list.
fn elide(name: &str) -> (String, bool) {
    let mut text = String::with_capacity(name.len());
    let mut had_parameters = false;
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(operator) = operator_symbol(&text, rest) {
            text.push_str(operator);
            rest = &rest[operator.len()..];
            continue;
        }
        let follows_word =
            text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || matches!(c, '>' | ')' | ']' | '}'));
        match c {
            '<' if follows_word
                || text.ends_with("::")
                || (text.ends_with(' ') && is_operator_end(&text)) =>
            {
                text.truncate(text.trim_end_matches("::").len());
                text.push_str("<…>");
                rest = behind_group(rest);
            }
            '(' if follows_word || is_operator_end(&text) => {
                had_parameters = true;
                rest = behind_parameters(behind_group(rest));
            }
            _ => {
                text.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    (text, had_parameters)
}

/// The symbol of `operator<<` and the like, if `text` ends with `operator` and `rest` begins with a symbol.
fn operator_symbol<'a>(text: &str, rest: &'a str) -> Option<&'a str> {
    const SYMBOLS: [&str; 12] = ["()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"];
    if !text.ends_with("operator") {
        return None;
    }
    SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)).map(|symbol| &rest[..symbol.len()])
}

/// Returns whether `text` ends with an operator's name, such as `operator==` or `operator()`.
fn is_operator_end(text: &str) -> bool {
    text.rfind("operator")
        .is_some_and(|at| !text[at + 8..].contains(|c: char| c == ':' || c.is_alphanumeric()))
}

/// What follows the bracket that `text` begins with and its partner; empty when there is none.
fn behind_group(text: &str) -> &str {
    let mut depth = 0_u32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return &text[at + c.len_utf8()..];
                }
            }
            _ => {}
        }
        before = c;
    }
    ""
}

/// Skips what may follow a parameter list: ` const`, ` [clone .cold]`. Only a nested name goes on.
fn behind_parameters(text: &str) -> &str {
    let text = text.strip_prefix(" const").unwrap_or(text);
    if text.starts_with("::") || text.starts_with(['#', '}', '>', ')', '\'']) { text } else { "" }
}

/// Cuts a return type: everything up to the last blank outside of brackets that is not part of the name.
fn without_return_type(text: &str) -> &str {
    let end = text
        .find("operator")
        .filter(|at| text[..*at].ends_with([':', ' ']) || *at == 0)
        .unwrap_or(text.len());
    let mut depth = 0_u32;
    let mut start = 0;
    for (at, c) in text[..end].char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, short: &str) {
        assert_eq!(short_name(name), short);
    }

    #[test]
    fn c_names_stay() {
        check("main", "main");
        check("0x1234", "0x1234");
        check("foo.part.0", "foo.part.0");
        check("", "");
    }

    #[test]
    fn rust_names_lose_hashes_and_arguments() {
        check("csv::main::h0123456789abcdef", "csv::main");
        check("alloc::vec::Vec<T,A>::push::h0123456789abcdef", "alloc::vec::Vec<…>::push");
        check("core[846817f741e54dfd]::ops::function", "core::ops::function");
        check(
            "<alloc::vec::Vec<u8> as core::clone::Clone>::clone",
            "<alloc::vec::Vec<…> as core::clone::Clone>::clone",
        );
        check("app::run::{{closure}}", "app::run::{{closure}}");
        check("app::parse::<u8>::{closure#0}", "app::parse<…>::{closure#0}");
        check("{closure#0}<u8, alloc::vec::Vec<u8>>", "{closure#0}<…>");
        check("alloc::slice::<impl [T]>::to_vec", "alloc::slice<…>::to_vec");
        check("<(A, B) as app::Tuple>::make", "<(A, B) as app::Tuple>::make");
    }

    #[test]
    fn cpp_names_lose_parameters_return_types_and_template_arguments() {
        check("std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<…>::push_back");
        check("void app::fill<std::map<int, int> >(int) const", "app::fill<…>");
        check("std::unique_ptr<A, std::default_delete<A> > std::make_unique<A>()", "std::make_unique<…>");
        check("(anonymous namespace)::load(char const*)", "(anonymous namespace)::load");
        check("app::(anonymous namespace)::Row::Row(int)", "app::(anonymous namespace)::Row::Row");
        check("work(int)::{lambda(char)#1}::operator()(char) const", "work::{lambda#1}::operator()");
        check("foo(int) [clone .cold]", "foo");
    }

    #[test]
    fn cpp_operators_keep_their_symbols() {
        check("operator new(unsigned long)", "operator new");
        check("operator new[](unsigned long)", "operator new[]");
        check("std::ostream& operator<< <char>(std::ostream&, char)", "operator<< <…>");
        check("A::operator<(A const&) const", "A::operator<");
        check("A::operator==(A const&) const", "A::operator==");
        check("A::operator->() const", "A::operator->");
        check("A::operator bool() const", "A::operator bool");
        check("app::cooperator(int)", "app::cooperator");
    }

    #[test]
    fn unbalanced_names_end_quietly() {
        check("foo<bar", "foo<…>");
        check("foo(bar", "foo");
        check("a[b", "a[b");
    }

    #[test]
    fn a_place_is_a_line_or_a_module() {
        let mut frame = Frame { file: Some("/src/a/reader.rs".into()), line: Some(12), ..Frame::default() };
        assert_eq!(place(&frame), "(reader.rs:12)");
        for (path, text) in [
            ("/rustc/1/library/alloc/src/raw_vec/mod.rs", "(raw_vec/mod.rs:12)"),
            ("/x/csv-1.4.0/src/lib.rs", "(csv-1.4.0/src/lib.rs:12)"),
            ("src/lib.rs", "(src/lib.rs:12)"),
            ("/mod.rs", "(mod.rs:12)"),
            ("/x/serde_core-1.0/src/de/impls.rs", "(de/impls.rs:12)"),
        ] {
            frame.file = Some(path.into());
            assert_eq!(place(&frame), text);
        }
        frame.file = Some("/src/a/reader.rs".into());
        frame.line = None;
        assert_eq!(place(&frame), "(reader.rs)");
        frame.file = None;
        assert_eq!(place(&frame), "");
        frame.module = Some("/usr/lib/libz.so.1".into());
        assert_eq!(place(&frame), "[libz.so.1]");
    }
}
