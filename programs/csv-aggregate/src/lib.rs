//! What the two versions of the CSV program share: reading the file, guessing a field's type, and the histogram.
//!
//! They differ only in how they walk the rows, so that a comparison of their profiles shows that and nothing else.

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;

/// A field that holds this text counts as absent.
pub const NULL: &[u8] = b"NULL";

/// A field's value, by the first type that its bytes parse as.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A whole number that fits 64 bits.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// UTF-8 text that is no number.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
}

/// Parses one field; `None` for [`NULL`] and for an empty field.
pub fn parse(bytes: &[u8]) -> Option<Field> {
    if bytes.is_empty() || bytes == NULL {
        return None;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some(Field::Bytes(bytes.to_vec()));
    };
    if let Ok(integer) = text.parse() {
        return Some(Field::Integer(integer));
    }
    if let Ok(float) = text.parse() {
        return Some(Field::Float(float));
    }
    Some(Field::Text(text.to_owned()))
}

/// How many fields have each type.
pub fn histogram(fields: &[Option<Field>]) -> HashMap<&'static str, usize> {
    let mut counts = HashMap::new();
    for field in fields {
        let kind = match field {
            None => "null",
            Some(Field::Integer(_)) => "integer",
            Some(Field::Float(_)) => "float",
            Some(Field::Text(_)) => "text",
            Some(Field::Bytes(_)) => "bytes",
        };
        *counts.entry(kind).or_insert(0) += 1;
    }
    counts
}

/// How a version of the program turns the file's bytes into fields.
pub type ReadCsv = fn(&[u8]) -> Result<Vec<Option<Field>>, Box<dyn Error>>;

/// Reads the file named by the first argument with `read_csv` and prints the histogram, one line per type by name.
pub fn run(program: &str, read_csv: ReadCsv) -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("{program}: name the CSV file: {program} FILE (csv-generate FILE makes one).");
        return ExitCode::from(2);
    };
    let counted = std::fs::read(&path).map_err(Into::into).and_then(|data| read_csv(&data));
    match counted {
        Ok(fields) => {
            print(&histogram(&fields));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{program}: {} cannot be counted: {error}.", path.to_string_lossy());
            ExitCode::from(2)
        }
    }
}

fn print(counts: &HashMap<&'static str, usize>) {
    for kind in ["null", "integer", "float", "text", "bytes"] {
        println!("{kind} {}", counts.get(kind).copied().unwrap_or(0));
    }
}

mod inside;

pub use inside::profile;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_takes_the_first_type_that_fits() {
        assert_eq!(parse(b""), None);
        assert_eq!(parse(NULL), None);
        assert_eq!(parse(b"-12"), Some(Field::Integer(-12)));
        assert_eq!(parse(b"99999999999999999999"), Some(Field::Float(1e20)));
        assert_eq!(parse(b"23.5"), Some(Field::Float(23.5)));
        assert_eq!(parse(b"x1"), Some(Field::Text("x1".to_owned())));
        assert_eq!(parse(&[0xff, 0x31]), Some(Field::Bytes(vec![0xff, 0x31])));
    }

    #[test]
    fn the_histogram_counts_each_type() {
        let counts = histogram(&[None, parse(b"1"), parse(b"2"), parse(b"2.5"), parse(b"two")]);
        assert_eq!((counts["null"], counts["integer"], counts["float"], counts["text"]), (1, 2, 1, 1));
        assert_eq!(counts.get("bytes"), None);
    }
}
