//! Globs over the names of functions and modules: `*` is any text, `?` any character.

use mallow_base::Frame;

/// Whether a glob is the whole of a text. Takes time in proportion to both lengths' product at most.
pub fn matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut at_glob, mut at_text) = (0, 0);
    // Where the last star stands, and up to where its text reaches.
    let mut star: Option<(usize, usize)> = None;
    while at_text < text.len() {
        match glob.get(at_glob) {
            Some('*') => {
                star = Some((at_glob, at_text));
                at_glob += 1;
            }
            Some(c) if *c == '?' || *c == text[at_text] => {
                at_glob += 1;
                at_text += 1;
            }
            _ => {
                let Some((at_star, end)) = star else { return false };
                star = Some((at_star, end + 1));
                (at_glob, at_text) = (at_star + 1, end + 1);
            }
        }
    }
    glob[at_glob..].iter().all(|c| *c == '*')
}

/// Whether a glob is a frame's function, its module's file name or its module's path.
pub fn matches_frame(glob: &str, frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or("");
    let file_name = module.rsplit('/').next().unwrap_or("");
    matches(glob, &frame.function)
        || (!module.is_empty() && (matches(glob, file_name) || matches(glob, module)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by trying everything.
    fn naive(glob: &[u8], text: &[u8]) -> bool {
        match (glob.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), _) => naive(&glob[1..], text) || (!text.is_empty() && naive(glob, &text[1..])),
            (Some(b'?'), Some(_)) => naive(&glob[1..], &text[1..]),
            (Some(a), Some(b)) => a == b && naive(&glob[1..], &text[1..]),
            _ => false,
        }
    }

    #[test]
    fn names_and_modules_match() {
        let module = Some("/usr/lib/x86_64-linux-gnu/libssl.so.3".to_owned());
        let frame = Frame { function: "re.compile".to_owned(), module, ..Frame::default() };
        for glob in ["libssl*", "re.compile", "re.*", "*/libssl.so.3", "re?compile"] {
            assert!(matches_frame(glob, &frame), "{glob}");
        }
        for glob in ["libssl", "compile", "", "re.compile2", "libcrypto*"] {
            assert!(!matches_frame(glob, &frame), "{glob}");
        }
        assert!(!matches_frame("", &Frame { function: "f".to_owned(), ..Frame::default() }));
    }

    proptest! {
        #[test]
        fn it_is_the_same_as_trying_everything(glob in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(matches(&glob, &text), naive(glob.as_bytes(), text.as_bytes()));
        }
    }
}
