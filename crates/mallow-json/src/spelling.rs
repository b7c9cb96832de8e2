//! One spelling of what comes from a list: values of enumerations and names of metrics are lower case with underscores in every document, however
//! flags and text for people spell them.

use std::borrow::Cow;

/// Returns a word as documents spell it.
pub(crate) fn spelled(word: &'static str) -> Cow<'static, str> {
    let is_so = word.bytes().all(|byte| !byte.is_ascii_uppercase() && byte != b'-' && byte != b' ');
    if is_so { Cow::Borrowed(word) } else { word.to_ascii_lowercase().replace(['-', ' '], "_").into() }
}

/// Returns whether a value of a document is one of these words. Documents of earlier versions have other spellings.
pub(crate) fn is_word(value: &str, word: &'static str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    plain(value) == plain(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_spelling() {
        for (word, expected) in
            [("GROWS-WHEN-IDLE", "grows_when_idle"), ("off-cpu", "off_cpu"), ("time", "time"), ("OK", "ok")]
        {
            assert_eq!(spelled(word), expected);
            assert!(is_word(word, word) && is_word(expected, word) && !is_word("other", word));
        }
    }
}
