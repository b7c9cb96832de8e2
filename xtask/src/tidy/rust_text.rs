//! Rust source as text: which parts are code, and where functions begin and end.
//!
//! Just enough of the language's surface for checks by line. It must never be taken for a parser: macros are read as
//! they stand.

use std::iter::Peekable;
use std::str::Chars;

/// A function's name and extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Line of its `fn`, counted from 1.
    pub(super) line: usize,
    /// From the line of its `fn` to that of its closing brace.
    pub(super) lines: usize,
}

/// The source with comments blanked and the contents of literals taken out; line breaks stay where they were.
pub(super) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => skip_line(&mut rest),
            '/' if rest.peek() == Some(&'*') => skip_block_comment(&mut rest, &mut code),
            '"' => skip_string(&mut rest, &mut code),
            'r' if !is_word(before) && starts_raw_string(&rest) => skip_raw_string(&mut rest, &mut code),
            'b' | 'c' if !is_word(before) && rest.peek() == Some(&'r') => {
                // `br"…"` and `cr"…"`: the letter is dropped, `r` is looked at next. A plain word keeps both.
                code.push(c);
                continue;
            }
            '\'' => skip_character(&mut rest, &mut code),
            _ => code.push(c),
        }
        before = c;
    }
    code
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn skip_line(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| *c != '\n').is_some() {}
}

fn skip_block_comment(rest: &mut Peekable<Chars<'_>>, code: &mut String) {
    rest.next();
    let mut depth = 1;
    while depth > 0
        && let Some(c) = rest.next()
    {
        match (c, rest.peek()) {
            ('/', Some('*')) => (depth, _) = (depth + 1, rest.next()),
            ('*', Some('/')) => (depth, _) = (depth - 1, rest.next()),
            ('\n', _) => code.push('\n'),
            _ => {}
        }
    }
}

fn skip_string(rest: &mut Peekable<Chars<'_>>, code: &mut String) {
    code.push_str("\"\"");
    while let Some(c) = rest.next() {
        match c {
            '"' => return,
            '\n' => code.push('\n'),
            // An escaped line break still ends a line.
            '\\' if rest.next() == Some('\n') => code.push('\n'),
            _ => {}
        }
    }
}

/// Whether what follows an `r` is `"` or `#…#"`; `r#name` is an identifier.
fn starts_raw_string(rest: &Peekable<Chars<'_>>) -> bool {
    rest.clone().find(|c| *c != '#') == Some('"')
}

fn skip_raw_string(rest: &mut Peekable<Chars<'_>>, code: &mut String) {
    code.push_str("\"\"");
    let mut hashes = 0;
    while rest.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    rest.next();
    while let Some(c) = rest.next() {
        if c == '\n' {
            code.push('\n');
        }
        if c == '"' {
            let closing = (0..hashes).take_while(|_| rest.next_if_eq(&'#').is_some()).count();
            if closing == hashes {
                return;
            }
        }
    }
}

/// A character literal, or the quote of a lifetime or label, which stays.
fn skip_character(rest: &mut Peekable<Chars<'_>>, code: &mut String) {
    let mut ahead = rest.clone();
    let first = ahead.next();
    let is_literal = first == Some('\\') || ahead.next() == Some('\'');
    if !is_literal {
        code.push('\'');
        return;
    }
    code.push_str("''");
    rest.next();
    if first == Some('\\') {
        rest.next();
        while rest.next_if(|c| *c != '\'').is_some() {}
    }
    rest.next();
}

/// The word that follows the word `keyword` in a line of code, if the line has it.
pub(super) fn word_after<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let mut words = line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
    words.find(|word| *word == keyword)?;
    words.next()
}

/// Every function with a body, given what [`code_only`] returned. Nested functions count for themselves too.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = word_after(line, "fn").filter(|_| declares_function(line)) else { continue };
        if let Some(last) = closing_line(&lines, index) {
            found.push(Function { name: name.to_owned(), line: index + 1, lines: last - index + 1 });
        }
    }
    found
}

/// `fn` as a declaration: only qualifiers stand before it, so that the type `fn(u8)` is left alone.
fn declares_function(line: &str) -> bool {
    const QUALIFIERS: &[&str] =
        &["pub", "crate", "super", "self", "in", "const", "async", "unsafe", "extern", "default", ""];
    let Some((before, after)) = line.split_once("fn ") else { return false };
    let only_qualifiers = before.split(|c: char| !is_word(c)).all(|word| QUALIFIERS.contains(&word));
    only_qualifiers && after.starts_with(is_word)
}

/// The line of the brace that closes the body which opens at or after `start`; `None` where `;` comes first.
fn closing_line(lines: &[&str], start: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (index, line) in lines.iter().enumerate().skip(start) {
        for c in line.chars() {
            match c {
                // `[u8; 4]` in a signature does not end it.
                '[' | '(' => brackets += 1,
                ']' | ')' => brackets = brackets.saturating_sub(1),
                '{' => braces += 1,
                '}' if braces == 1 => return Some(index),
                '}' => braces = braces.saturating_sub(1),
                ';' if braces == 0 && brackets == 0 => return None,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_taken_out() {
        for (source, code) in [
            ("a // b\nc", "a \nc"),
            ("a /* b /* c */\n d */ e", "a \n e"),
            (r#"f("} \" //", 'x', '\'', b'\n', '\u{1F}')"#, r#"f("", '', '', b'', '')"#),
            ("r#\"}\"\"# + r\"\\\" + br\"{\" + r#fn", "\"\" + \"\" + b\"\" + r#fn"),
            ("impl<'a> A<'a> { 'l: loop {} }", "impl<'a> A<'a> { 'l: loop {} }"),
            ("\"one\n two \\\n three\" x", "\"\"\n\n x"),
            ("for char in var {}", "for char in var {}"),
        ] {
            assert_eq!(code_only(source), code, "{source}");
        }
    }

    #[test]
    fn functions_are_found_with_their_extent() {
        let source = "pub(crate) const unsafe extern \"C\" fn a<const N: usize>(\n    x: [u8; 4],\n) -> u8\nwhere\n{\n    if x { \"}\" }\n}\nfn b() {}\n";
        let found = functions(&code_only(source));
        let expected = [("a", 1, 7), ("b", 8, 1)];
        let expected = expected.map(|(name, line, lines)| Function { name: name.to_owned(), line, lines });
        assert_eq!(found, expected);
    }

    #[test]
    fn types_and_declarations_are_no_functions() {
        for source in ["let f: fn (u8) = g;", "trait T {\n    fn t(&self) -> [u8; 2];\n}", "type F = fn(u8);"]
        {
            assert_eq!(functions(source), [], "{source}");
        }
    }

    #[test]
    fn words_are_whole_words() {
        assert_eq!(word_after("pub mod name;", "mod"), Some("name"));
        assert_eq!(word_after("modify name", "mod"), None);
    }
}
