//! Filters: which part of a profile is looked at, as an expression over functions, files, modules, languages, requests, sizes, threads and
//! processes.
//!
//! A test of functions, files, modules or languages holds for a stack if it holds for some frame of it, folded ones included; one of requests
//! if the stack has made such a one. Tests of the other fields hold for a block or a sample. `and`, `or`, `not` and parentheses put them together.
//!
//! In reading order: [`Expression`] is what was typed (`parse.rs` reads it, `wrong.rs` says what is wrong with it), [`Matching`] holds it
//! against a profile.

mod matching;
mod parse;
mod wrong;

pub use matching::{Matching, ProcessName, ThreadName};
pub use wrong::{FilterError, Reason};

use mallow_base::Frame;
use regex::Regex;
use std::fmt;
use std::str::FromStr;

/// A filter.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: Node,
    /// By their numbers in the nodes.
    tests: Vec<Test>,
}

/// A part of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    /// The number of a test.
    Test(u32),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// A test of one field.
#[derive(Clone, Debug)]
enum Test {
    Frame(FrameField, TextTest),
    Thread(TextTest),
    Process(TextTest),
    Request(TextTest),
    Size(Comparison, u64),
}

/// A field of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameField {
    Function,
    File,
    Module,
    Language,
    /// The name of a function, or the path of a module: a text without a field.
    Any,
}

/// A test of a text.
#[derive(Clone, Debug)]
enum TextTest {
    /// It is a part.
    Has(String),
    /// It is the whole.
    Is(String),
    Matches(Regex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Below,
    UpTo,
    Equal,
    From,
    Above,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

/// As it was typed.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expression {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::expression(text)
    }
}

impl Expression {
    /// Returns whether it has a test of block sizes.
    pub fn asks_for_sizes(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Size(..)))
    }

    /// Returns whether it has a test of threads.
    pub fn asks_for_threads(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Thread(_)))
    }

    /// Returns whether it has a test of processes.
    pub fn asks_for_processes(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Process(_)))
    }

    /// Returns whether it has a test of requests.
    pub fn asks_for_requests(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Request(_)))
    }

    /// Returns whether it needs events: sums by stack have no sizes and threads.
    pub fn needs_events(&self) -> bool {
        self.asks_for_sizes() || self.asks_for_threads()
    }
}

impl TextTest {
    fn holds(&self, text: &str) -> bool {
        match self {
            TextTest::Has(part) => text.contains(part.as_str()),
            TextTest::Is(whole) => text == whole,
            TextTest::Matches(pattern) => pattern.is_match(text),
        }
    }

    fn holds_for(&self, text: Option<&str>) -> bool {
        text.is_some_and(|text| self.holds(text))
    }
}

impl FrameField {
    /// Names are compared as a whole and as they are shown; so are paths, with their folders and without.
    fn holds(self, test: &TextTest, frame: &Frame) -> bool {
        let name = || test.holds(&frame.function) || test.holds(&crate::short_name(&frame.function));
        let path = |path: Option<&str>| {
            test.holds_for(path) || test.holds_for(path.and_then(|path| path.rsplit('/').next()))
        };
        match self {
            FrameField::Function => name(),
            FrameField::File => path(frame.file.as_deref()),
            FrameField::Module => path(frame.module.as_deref()),
            FrameField::Language => test.holds(parse::word_of(frame.language)),
            FrameField::Any => name() || path(frame.module.as_deref()),
        }
    }
}

impl Comparison {
    fn holds(self, size: u64, than: u64) -> bool {
        match self {
            Comparison::Below => size < than,
            Comparison::UpTo => size <= than,
            Comparison::Equal => size == than,
            Comparison::From => size >= than,
            Comparison::Above => size > than,
        }
    }
}

impl Node {
    /// Returns whether it holds, where the bits say which tests do.
    fn holds(&self, tests: u64) -> bool {
        match self {
            Node::Test(number) => tests & (1 << number) != 0,
            Node::Not(node) => !node.holds(tests),
            Node::All(nodes) => nodes.iter().all(|node| node.holds(tests)),
            Node::Any(nodes) => nodes.iter().any(|node| node.holds(tests)),
        }
    }
}

#[cfg(test)]
mod tests;
