//! Globs over the names of functions and modules: `*` is any text, `?` any character.

use mallow_base::Frame;
pub use mallow_base::glob_matches as matches;

/// Returns whether a glob is a text that begins with `start` and goes on.
pub fn goes_on_from(glob: &str, start: &str) -> bool {
    let glob: Vec<char> = glob.chars().collect();
    // Every place in the glob that what was read up to now may have led to.
    let mut places: Vec<bool> = vec![false; glob.len() + 1];
    places[0] = true;
    let past_stars = |places: &mut Vec<bool>| {
        (0..glob.len()).for_each(|at| places[at + 1] |= places[at] && glob[at] == '*');
    };
    past_stars(&mut places);
    for letter in start.chars() {
        let mut next = vec![false; glob.len() + 1];
        for at in (0..glob.len()).filter(|at| places[*at]) {
            match glob[at] {
                '*' => next[at] = true,
                c if c == '?' || c == letter => next[at + 1] = true,
                _ => {}
            }
        }
        past_stars(&mut next);
        places = next;
    }
    places[..glob.len()].contains(&true)
}

/// Returns whether a glob is a frame's function, its module's file name or its module's path.
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
        fn a_glob_agrees_with_exhaustive_matching(glob in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(matches(&glob, &text), naive(glob.as_bytes(), text.as_bytes()));
        }

        /// Of texts that go on by one to four letters, one matches, for a glob with as few letters of its own.
        #[test]
        fn a_glob_goes_on_from_what_some_longer_text_begins_with(glob in "[ab*?]{0,5}", start in "[ab]{0,3}") {
            let mut texts = vec![start.clone()];
            let mut matched = false;
            for _ in 0..5 {
                texts = texts.iter().flat_map(|text| [format!("{text}a"), format!("{text}b")]).collect();
                matched |= texts.iter().any(|text| matches(&glob, text));
            }
            prop_assert_eq!(goes_on_from(&glob, &start), matched);
        }
    }
}
