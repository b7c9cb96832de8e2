//! Files of variables: `.env`.
//!
//! `KEY=VALUE` lines, comments, quotes, and `export ` before a key. `$NAME` is not expanded, because programs that
//! read such files disagree on it.

use mallow_query::Failure;
use std::path::Path;

/// Parses the variables of a file, in its order; of equal names the last one counts.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: &str| Failure::new(format!("{}, line {}: {what}.", path.display(), at + 1));
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let (key, value) = line.split_once('=').ok_or_else(|| bad("KEY=VALUE was expected"))?;
        let key = key.trim_end();
        let is_name =
            |(at, c): (usize, char)| c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit());
        if key.is_empty() || !key.chars().enumerate().all(is_name) {
            return Err(bad(&format!("`{}` is not the name of a variable", mallow_text::printable(key))));
        }
        let value = value_of(value.trim_start()).ok_or_else(|| bad("the quotation has no end"))?;
        variables.retain(|(known, _)| known != key);
        variables.push((key.to_owned(), value));
    }
    Ok(variables)
}

/// Returns a value without its quotes and without a comment after it; `None` if a quote is not closed.
fn value_of(text: &str) -> Option<String> {
    match text.chars().next() {
        Some('\'') => text[1..].split_once('\'').map(|(value, _)| value.to_owned()),
        Some('"') => double_quoted(&text[1..]),
        _ => {
            let end = text.match_indices('#').map(|(at, _)| at);
            let mut comment = end.filter(|at| *at == 0 || text[..*at].ends_with(char::is_whitespace));
            Some(text[..comment.next().unwrap_or(text.len())].trim_end().to_owned())
        }
    }
}

fn double_quoted(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '"' => return Some(value),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse(text, Path::new(".env")).unwrap_or_else(|failure| panic!("{}", failure.sentence()))
    }

    #[test]
    fn values_come_out_of_their_quotes() {
        let text = "# the test\nTRIES=1\n\nexport HOST = 127.0.0.1 # here\nNAME=\"a \\\"b\\\" # c\\n\" # d\nONE='it is #1'\nEMPTY=\nURL=http://x/#a\r\nTRIES=2\n";
        let expected = [
            ("HOST", "127.0.0.1"),
            ("NAME", "a \"b\" # c\n"),
            ("ONE", "it is #1"),
            ("EMPTY", ""),
            ("URL", "http://x/#a"),
            ("TRIES", "2"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(read(text), expected);
    }

    #[test]
    fn what_is_no_variable_is_refused_with_its_line() {
        for (text, sentence) in [
            ("A=1\nB", ".env, line 2: KEY=VALUE was expected."),
            ("1A=2", ".env, line 1: `1A` is not the name of a variable."),
            ("A='b", ".env, line 1: the quotation has no end."),
            ("A=\"b\\", ".env, line 1: the quotation has no end."),
        ] {
            let failure = parse(text, Path::new(".env")).map_err(|failure| failure.sentence().to_owned());
            assert_eq!(failure, Err(sentence.to_owned()));
        }
    }
}
