//! Rust source as tokens, for rules about single words: no comments, no insides of literals, whatever the layout.
//!
//! It must not be taken for the compiler: macros stand as they are written.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Tokens that stand beside each other: those of the file, and those between each pair of brackets.
pub(super) type Run = Vec<TokenTree>;

/// A function's name and extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Line of its `fn`, counted from 1.
    pub(super) line: usize,
    /// From the line of its `fn` to that of its closing brace.
    pub(super) lines: usize,
}

/// Every run of a file, the file's own first. Of what is no Rust there is none; the compiler says so better.
pub(super) fn runs(source: &str) -> Vec<Run> {
    let whole: TokenStream = source.parse().unwrap_or_default();
    let mut found: Vec<Run> = vec![whole.into_iter().collect()];
    let mut next = 0;
    while let Some(run) = found.get(next) {
        let inner = |token: &TokenTree| match token {
            TokenTree::Group(group) => Some(group.stream().into_iter().collect()),
            _ => None,
        };
        let inner: Vec<Run> = run.iter().filter_map(inner).collect();
        found.extend(inner);
        next += 1;
    }
    found
}

/// The identifier that a token is.
pub(super) fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// Where an identifier stands in a run: its places.
pub(super) fn places<'a>(run: &'a [TokenTree], name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_it = move |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == name);
    run.iter().enumerate().filter(move |(_, token)| is_it(token)).map(|(place, _)| place)
}

/// What stands between brackets of this kind, if the token is that.
pub(super) fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<&Group> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

/// A token's line, counted from 1.
pub(super) fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

/// Every function with a body. Nested functions count for themselves too.
pub(super) fn functions(runs: &[Run]) -> Vec<Function> {
    let mut found = Vec::new();
    for run in runs {
        for place in places(run, "fn") {
            // Without a name it is a type.
            let Some(name) = word(run.get(place + 1)) else { continue };
            let rest = run[place..].iter();
            let ends =
                |token: &&TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
            let body =
                rest.take_while(|token| !ends(token)).find_map(|token| group(Some(token), Delimiter::Brace));
            if let Some(body) = body {
                let line = line(&run[place]);
                found.push(Function { name, line, lines: body.span_close().end().line - line + 1 });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_extent_wherever_they_are() {
        let source = "// fn no() {}\npub(crate) const unsafe extern \"C\" fn a<const N: usize>(\n    \
                      x: [u8; 4],\n) -> u8\nwhere\n{\n    if x { \"}\" }\n}\nexport! { fn b() {} }\n";
        let expected = [("a", 2, 7), ("b", 9, 1)];
        let expected = expected.map(|(name, line, lines)| Function { name: name.to_owned(), line, lines });
        assert_eq!(functions(&runs(source)), expected);
    }

    #[test]
    fn types_and_declarations_are_no_functions() {
        for source in ["let f: fn (u8) = g;", "trait T {\n    fn t(&self) -> [u8; 2];\n}", "type F = fn(u8);"]
        {
            assert_eq!(functions(&runs(source)), [], "{source}");
        }
    }
}
