//! Text that was found somewhere, made fit to be shown: nobody's terminal or page is to obey a program's name.

/// Control characters of a program's name must not reach the terminal, nor those that nobody sees and that turn around what is beside them. In a
/// log of GitHub's, a line that begins with `::` and what stands behind `##[` are commands to the runner: a word cannot begin so.
pub fn printable(text: &str) -> String {
    let seen: String = text.chars().map(|c| if c.is_control() || is_unseen(c) { '?' } else { c }).collect();
    if !seen.contains("::") && !seen.contains("##[") {
        return seen;
    }
    let mut shown = String::with_capacity(seen.len());
    for (at, c) in seen.char_indices() {
        let begins_word = shown.chars().next_back().is_none_or(char::is_whitespace);
        let is_command = begins_word && seen[at..].starts_with("::")
            || shown.ends_with('#') && seen[at..].starts_with("#[");
        shown.push(if is_command { '?' } else { c });
    }
    shown
}

/// Returns whether Unicode has it among the characters that format (`Cf`), or it parts lines or paragraphs (`Zl`, `Zp`).
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_shown_as_a_mark() {
        assert_eq!(
            printable("a\u{202e}b\u{200b}\u{2066}c\u{feff}\u{e0041}\u{1b}[31m\u{9b}d\n"),
            "a?b??c???[31m?d?"
        );
        assert_eq!(
            printable("::set-output name=a::1  ::x ##[error]y"),
            "?:set-output name=a::1  ?:x #?[error]y"
        );
        let seen = "größer → Ω 界 🙂 e\u{301} a\u{a0}b a::b <a as b>::c #[d] ##";
        assert_eq!(printable(seen), seen);
    }
}
