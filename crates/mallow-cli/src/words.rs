//! Splits a command that is given as one argument.

use std::ffi::OsString;

/// Returns the words of a command line, with quotes and backslashes interpreted as a shell does. No shell runs it:
/// nothing is expanded, and the program itself is started. `None` if there is no word, or a quote is not closed.
pub(crate) fn of_command(line: &str) -> Option<Vec<OsString>> {
    let words: Vec<OsString> = shlex::split(line)?.into_iter().map(OsString::from).collect();
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let words =
            |line| of_command(line).map(|words| words.join(std::ffi::OsStr::new("|")).into_string().unwrap());
        assert_eq!(
            words("./server --name 'old one' \"a b\" c\\ d").as_deref(),
            Some("./server|--name|old one|a b|c d")
        );
        assert_eq!((words(""), words("  "), words("./server 'old")), (None, None, None));
    }
}
