//! Globs: `*` is any text, `?` any character.

/// Returns whether a glob is the whole of a text. Takes time in proportion to both lengths' product at most.
pub fn glob_matches(glob: &str, text: &str) -> bool {
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
