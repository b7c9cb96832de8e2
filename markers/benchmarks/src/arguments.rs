//! The words that cargo, people and test runners pass to a program of benchmarks.

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Parts of names; none for all benchmarks.
    filters: Vec<String>,
    /// They are whole names.
    is_exact: bool,
    /// Print the names and run nothing.
    pub(crate) lists: bool,
    /// It was started by `cargo bench`, and not by `cargo test` or by hand.
    pub(crate) is_bench: bool,
    /// How often to call each, with nothing measured in this process.
    pub(crate) iterations: Option<u64>,
}

impl Arguments {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let (flag, joined) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (&word[..], None),
            };
            let mut value =
                || joined.clone().or_else(|| words.next()).ok_or(format!("{flag} needs a value."));
            match flag {
                "--bench" => arguments.is_bench = true,
                "--exact" => arguments.is_exact = true,
                "--list" => arguments.lists = true,
                "--iterations" => arguments.iterations = Some(iterations(&value()?)?),
                // Of Rust's own harness: how its output looks, which is nothing to us.
                "--format" | "--color" | "--test-threads" => _ = value()?,
                "--test" | "--nocapture" | "--no-capture" | "--show-output" | "-q" | "--quiet" => {}
                _ if flag.starts_with('-') => {
                    return Err(format!(
                        "there is no {flag}; a program of benchmarks takes names, --exact, --list and --iterations N."
                    ))
                }
                _ => arguments.filters.push(word),
            }
        }
        Ok(arguments)
    }

    /// Returns whether a benchmark is asked for.
    pub(crate) fn selects(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.is_exact { name == filter } else { name.contains(&**filter) };
        self.filters.is_empty() || self.filters.iter().any(fits)
    }
}

fn iterations(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or(format!("--iterations is a number from 1 on, and {text:?} is none."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn names_select_and_flags_of_the_usual_harness_pass() {
        let some = parse(&["--bench", "parse", "--nocapture", "--format=terse", "--color", "never", "sort"])
            .unwrap();
        assert_eq!(["parse_all", "sorted", "split"].map(|name| some.selects(name)), [true, true, false]);
        let exact = parse(&["--exact", "parse"]).unwrap();
        assert_eq!(["parse_all", "parse"].map(|name| exact.selects(name)), [false, true]);
        assert!(parse(&[]).unwrap().selects("any"));
        assert_eq!(parse(&["--iterations", "7"]).unwrap().iterations, Some(7));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (words, sentence) in [
            (&["--iterations"][..], "--iterations needs a value."),
            (&["--iterations=0"], "--iterations is a number from 1 on, and \"0\" is none."),
            (
                &["--sample-size", "3"],
                "there is no --sample-size; a program of benchmarks takes names, --exact, --list and --iterations N.",
            ),
        ] {
            assert_eq!(parse(words), Err(sentence.to_owned()));
        }
    }
}
