//! The files that a compiler read, as it lists them: rules of make, from `cc -MD`, from GNU ld and from
//! `rustc --emit=dep-info`.

/// The dependencies of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// As the compiler wrote them: relative to its working folder, or absolute.
    pub(super) files: Vec<String>,
    /// Environment variables that it read, with their values; `None` for those that were not set.
    pub(super) variables: Vec<(String, Option<String>)>,
}

/// Parses a file of make rules. Invalid lines are ignored: a missing dependency cannot be detected anyway, so the
/// writer of the rules is trusted.
pub(super) fn parse(text: &str) -> Dependencies {
    let mut found = Dependencies::default();
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").lines() {
        if let Some(variable) = line.strip_prefix("# env-dep:") {
            let (name, value) = match variable.split_once('=') {
                Some((name, value)) => (name, Some(value.replace("\\n", "\n").replace("\\\\", "\\"))),
                None => (variable, None),
            };
            found.variables.push((name.to_owned(), value));
        } else if !line.starts_with('#')
            && let Some(files) = behind_target(line)
        {
            found.files.extend(words(files));
        }
    }
    found.files.sort();
    found.files.dedup();
    found.variables.sort();
    found.variables.dedup();
    found
}

/// Returns the text after the colon. A colon in a path is not followed by a space.
fn behind_target(line: &str) -> Option<&str> {
    line.split_once(": ").map(|(_, files)| files)
}

/// Splits at spaces that are not escaped. make writes `\ ` for a space, `\#` for `#` and `$$` for `$`.
fn words(files: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut letters = files.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(&escaped @ (' ' | '#' | '\\'))) | ('$', Some(&escaped @ '$')) => {
                word.push(escaped);
                letters.next();
            }
            (' ' | '\t', _) => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            (letter, _) => word.push(letter),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Vec<String> {
        parse(text).files
    }

    #[test]
    fn rules_of_a_c_compiler() {
        assert_eq!(
            files("a.o: a.c \\\n sub/b.h \\\n /usr/include/c.h\n"),
            ["/usr/include/c.h", "a.c", "sub/b.h"]
        );
        assert_eq!(files("a.o: my\\ file.c x\\#y.h cost$$.h\n"), ["cost$.h", "my file.c", "x#y.h"]);
        assert_eq!(files("C:/a.o: a.c\n"), ["a.c"]);
    }

    #[test]
    fn rules_of_a_linker_with_a_target_for_each_file() {
        assert_eq!(files("bin/t: \\\n  crt1.o \\\n  a.o\n\ncrt1.o:\n\na.o:\n"), ["a.o", "crt1.o"]);
    }

    #[test]
    fn rules_and_variables_of_rustc() {
        let found =
            parse("bin/t: t.rs m.rs\n\nbin/t.d: t.rs m.rs\n\nt.rs:\nm.rs:\n\n# env-dep:A=1\n# env-dep:B\n");
        assert_eq!(found.files, ["m.rs", "t.rs"]);
        assert_eq!(found.variables, [("A".to_owned(), Some("1".to_owned())), ("B".to_owned(), None)]);
    }
}
