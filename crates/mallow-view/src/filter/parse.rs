//! Reads an expression.
//!
//! ```text
//! expression = every { "or" every }
//! every      = test { "and" test }
//! test       = "not" test | "(" expression ")" | FIELD OPERATOR VALUE | TEXT
//! ```
//!
//! `|`, `||`, `&`, `&&` and `!` are `or`, `and` and `not`. Values and texts end at a blank or a parenthesis, or stand in quotes.

use super::wrong::{FilterError, Reason};
use super::{Comparison, Expression, FrameField, Node, Test, TextTest};
use mallow_base::{Language, quantity};
use mallow_profile::Request;
use regex::RegexBuilder;

/// Tests of an expression: their results are the bits of a word.
const TESTS_MAX: usize = 64;
/// Parentheses and nots around each other: reading them is recursive.
const DEPTH_MAX: usize = 100;
/// The maximal size of a compiled regular expression.
const PATTERN_BYTES_MAX: usize = 1 << 20;

const FIELDS: [(&str, Field); 8] = [
    ("function", Field::Frame(FrameField::Function)),
    ("file", Field::Frame(FrameField::File)),
    ("module", Field::Frame(FrameField::Module)),
    ("language", Field::Frame(FrameField::Language)),
    ("request", Field::Request),
    ("size", Field::Size),
    ("thread", Field::Thread),
    ("process", Field::Process),
];

/// The words for requests.
pub(super) const REQUESTS: [(&str, Request); 2] =
    [("calloc", Request::Zeroed), ("aligned", Request::Aligned)];

#[derive(Clone, Copy)]
enum Field {
    Frame(FrameField),
    Thread,
    Process,
    Request,
    Size,
}

/// The longer ones first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::UpTo),
    (">=", Comparison::From),
    ("==", Comparison::Equal),
    ("<", Comparison::Below),
    (">", Comparison::Above),
    ("=", Comparison::Equal),
];

/// Reads a whole expression.
pub(super) fn expression(text: &str) -> Result<Expression, FilterError> {
    let mut reader = Reader { text, at: 0, tests: Vec::new() };
    let root = reader.any(0).and_then(|root| match reader.rest() {
        "" => Ok(root),
        rest if rest.starts_with(')') => Err((reader.at, Reason::Closed)),
        _ => Err((reader.at, Reason::NoWordBetween)),
    });
    match root {
        Ok(root) => Ok(Expression { text: text.trim().to_owned(), root, tests: reader.tests }),
        Err((at, reason)) => Err(FilterError { text: text.to_owned(), at, reason }),
    }
}

type Wrong = (usize, Reason);

struct Reader<'a> {
    text: &'a str,
    at: usize,
    tests: Vec<Test>,
}

impl<'a> Reader<'a> {
    /// Returns the rest after blanks.
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Consumes a word or a sign, if it comes next. A word must not be a part of a longer name.
    fn takes(&mut self, word: &str, signs: &[&str]) -> bool {
        let rest = self.rest();
        let is_word = rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && !rest[word.len()..]
                .starts_with(|next: char| !next.is_whitespace() && next != '(' && next != '!');
        let taken = if is_word {
            Some(word.len())
        } else {
            signs.iter().find(|sign| rest.starts_with(**sign)).map(|sign| sign.len())
        };
        self.at += taken.unwrap_or(0);
        taken.is_some()
    }

    fn any(&mut self, depth: usize) -> Result<Node, Wrong> {
        let mut nodes = vec![self.all(depth)?];
        while self.takes("or", &["||", "|"]) {
            nodes.push(self.all(depth)?);
        }
        Ok(single_or(nodes, Node::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Node, Wrong> {
        let mut nodes = vec![self.test(depth)?];
        while self.takes("and", &["&&", "&"]) {
            nodes.push(self.test(depth)?);
        }
        Ok(single_or(nodes, Node::All))
    }

    fn test(&mut self, depth: usize) -> Result<Node, Wrong> {
        let _ = self.rest();
        let begin = self.at;
        if depth >= DEPTH_MAX {
            return Err((begin, Reason::TooDeep));
        }
        if self.takes("not", &["!"]) {
            return Ok(Node::Not(Box::new(self.test(depth + 1)?)));
        }
        if !self.rest().starts_with('(') {
            return self.field_or_text();
        }
        self.at += 1;
        let node = self.any(depth + 1)?;
        match self.rest() {
            rest if rest.starts_with(')') => self.at += 1,
            "" => return Err((begin, Reason::Open)),
            _ => return Err((self.at, Reason::NoWordBetween)),
        }
        Ok(node)
    }

    fn field_or_text(&mut self) -> Result<Node, Wrong> {
        let (begin, rest) = (self.at, self.rest());
        let word = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
        let behind = &rest[word.len()..];
        let has_operator = behind.starts_with(['=', '~', '<', '>']) && !behind.starts_with("<…")
            || behind.starts_with(':') && !behind.starts_with("::");
        let field = FIELDS.iter().find(|(name, _)| *name == word);
        let test = match field {
            Some((name, field)) if has_operator => {
                self.at += word.len();
                self.field(name, *field)?
            }
            None if has_operator && !word.is_empty() && !is_template(behind) => {
                return Err((begin, Reason::NoField(word.to_owned())));
            }
            _ => {
                let (_, text) = self.value(Reason::NoTest)?;
                Test::Frame(FrameField::Any, TextTest::Has(text))
            }
        };
        if self.tests.len() == TESTS_MAX {
            return Err((begin, Reason::TooMany));
        }
        self.tests.push(test);
        Ok(Node::Test(self.tests.len() as u32 - 1))
    }

    fn field(&mut self, name: &'static str, field: Field) -> Result<Test, Wrong> {
        let rest = self.rest();
        if let Field::Size = field {
            let (sign, comparison) = COMPARISONS
                .into_iter()
                .find(|(sign, _)| rest.starts_with(sign))
                .ok_or((self.at, Reason::NoOperator(name)))?;
            self.at += sign.len();
            let (at, text) = self.value(Reason::NoValue)?;
            let bytes = quantity::bytes(&text).filter(|bytes| (0.0..1e18).contains(bytes));
            let bytes = bytes.ok_or((at, Reason::BadSize(text)))?;
            return Ok(Test::Size(comparison, bytes.round() as u64));
        }
        let sign = rest.chars().next().filter(|sign| ":=~".contains(*sign));
        let sign = sign.ok_or((self.at, Reason::NoOperator(name)))?;
        self.at += 1;
        let (at, text) = self.value(Reason::NoValue)?;
        if let Field::Frame(FrameField::Language) = field {
            let is_known = Language::ALL.into_iter().any(|language| word_of(language) == text);
            if sign != '~' && !is_known {
                return Err((at, Reason::BadLanguage(text)));
            }
        }
        if let Field::Request = field
            && sign != '~'
            && !REQUESTS.iter().any(|(word, _)| *word == text)
        {
            return Err((at, Reason::BadRequest(text)));
        }
        let test = match sign {
            ':' => TextTest::Has(text),
            '=' => TextTest::Is(text),
            _ => TextTest::Matches(
                RegexBuilder::new(&text)
                    .size_limit(PATTERN_BYTES_MAX)
                    .build()
                    .map_err(|error| (at, Reason::BadPattern(why(&error))))?,
            ),
        };
        Ok(match field {
            Field::Frame(field) => Test::Frame(field, test),
            Field::Thread => Test::Thread(test),
            Field::Request => Test::Request(test),
            _ => Test::Process(test),
        })
    }

    /// Parses a value with its position: up to the next blank or unmatched parenthesis, or the text in quotes.
    fn value(&mut self, missing: Reason) -> Result<(usize, String), Wrong> {
        let rest = self.rest();
        let begin = self.at;
        if let Some(quote) = rest.chars().next().filter(|c| *c == '"' || *c == '\'') {
            let inside = &rest[1..];
            let end = inside.find(quote).ok_or((begin, Reason::OpenQuote))?;
            self.at += end + 2;
            return if end == 0 { Err((begin, missing)) } else { Ok((begin + 1, inside[..end].to_owned())) };
        }
        let mut open = 0_usize;
        let end = rest.find(|c: char| {
            match c {
                '(' => open += 1,
                ')' if open == 0 => return true,
                ')' => open -= 1,
                _ => {}
            }
            c.is_whitespace()
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        self.at += text.len();
        if text.is_empty() { Err((begin, missing)) } else { Ok((begin, text.to_owned())) }
    }
}

/// Returns the word for a language; machine code has one too.
pub(super) fn word_of(language: Language) -> &'static str {
    language.word().unwrap_or("native")
}

/// `Vec<T>` and `map<…>` are names and no comparisons.
fn is_template(behind: &str) -> bool {
    behind.starts_with('<') && behind.contains('>')
}

fn single_or(mut nodes: Vec<Node>, several: fn(Vec<Node>) -> Node) -> Node {
    if nodes.len() == 1 { nodes.remove(0) } else { several(nodes) }
}

/// A regular expression's fault in one line.
fn why(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim().trim_start_matches("error: ").to_owned()
        }
    }
}
