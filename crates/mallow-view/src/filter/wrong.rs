//! What is wrong with an expression, and where.

use std::fmt;

/// Why a filter is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The expression.
    pub text: String,
    /// The position in it, in bytes.
    pub at: usize,
    /// The error.
    pub reason: Reason,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The end of the expression, where a test is expected.
    NoTest,
    /// An operator after a word that is no field.
    NoField(String),
    /// A field without an operator that it has.
    NoOperator(&'static str),
    /// No value after an operator.
    NoValue,
    /// A regular expression that is none, in the words of its reader.
    BadPattern(String),
    /// Not a number of bytes.
    BadSize(String),
    /// A language that no frame has.
    BadLanguage(String),
    /// No kind of request.
    BadRequest(String),
    /// Two tests with nothing between them.
    NoWordBetween,
    /// A parenthesis that is not closed.
    Open,
    /// One that was not opened.
    Closed,
    /// A quote that is not closed.
    OpenQuote,
    /// More tests than are held.
    TooMany,
    /// More parentheses and nots around each other than are followed.
    TooDeep,
}

/// Fields, for the sentence that refuses another word.
pub(super) const FIELDS: &str = "function, file, module, language, request, size, thread, process";

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoTest => f.write_str("a test is missing, such as function:parse or size>=4KiB"),
            Reason::NoField(word) => write!(
                f,
                "there is no field {word}; there are {FIELDS}, and a text that is a name needs quotes"
            ),
            Reason::NoOperator("size") => {
                f.write_str("size is compared with <, <=, =, >= or >, as in size>=4KiB")
            }
            Reason::NoOperator(field) => write!(
                f,
                "{field} has : for a part, = for the whole and ~ for a regular expression, as in {field}:TEXT"
            ),
            Reason::NoValue => f.write_str("a value is missing"),
            Reason::BadPattern(why) => write!(f, "this is no regular expression: {why}"),
            Reason::BadSize(text) => write!(f, "{text} is no number of bytes such as 4096, 4KiB or 1.5MiB"),
            Reason::BadLanguage(text) => write!(
                f,
                "no frame has the language {text}; there are native, python, ruby, javascript and java"
            ),
            Reason::BadRequest(text) => {
                write!(f, "{text} is no request that is told apart; there are calloc and aligned")
            }
            Reason::NoWordBetween => {
                f.write_str("and, or, or the end was expected; put a text with blanks in quotes")
            }
            Reason::Open => f.write_str("this parenthesis is not closed"),
            Reason::Closed => f.write_str("this parenthesis was not opened"),
            Reason::OpenQuote => f.write_str("this quote is not closed"),
            Reason::TooMany => f.write_str("there are more than 64 tests"),
            Reason::TooDeep => f.write_str("there are more than 100 parentheses and nots around each other"),
        }
    }
}

/// The sentence, the expression, and a mark below the place.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = &self.text[..self.at];
        let column = before.chars().count();
        let shown = mallow_base::printable(&self.text);
        write!(f, "{} (column {})\n  {shown}\n  {:column$}^", self.reason, column + 1, "")
    }
}

impl std::error::Error for FilterError {}
