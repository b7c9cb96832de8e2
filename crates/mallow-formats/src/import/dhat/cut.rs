//! A DHAT file that was cut off: closed behind its last whole program point, or behind the last whole frame of its table.
//!
//! The table of frames comes last, so that a file that was cut mostly has none. Its points have their metrics and the numbers of their frames.

/// The lists of a file, which are what is in the brackets directly below the file's own.
#[derive(Clone, Copy, PartialEq)]
enum List {
    Points,
    Frames,
    Other,
}

/// A place behind which a text can be closed.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    is_in_list: bool,
    has_frames: bool,
}

/// Cuts a text behind the last whole element of its lists, and closes all brackets. Returns false, and changes nothing, if there is no whole
/// program point in it.
pub(super) fn close(text: &mut String) -> bool {
    let Some(Place { at, is_in_list, has_frames }) = last_place(text) else { return false };
    text.truncate(at);
    for (is_missing, rest) in [(is_in_list, "]"), (!has_frames, ",\"ftbl\":[]"), (true, "}")] {
        text.push_str(if is_missing { rest } else { "" });
    }
    true
}

fn last_place(text: &str) -> Option<Place> {
    let bytes = text.as_bytes();
    let (mut depth, mut at, mut place) = (0_u64, 0, None);
    let (mut list, mut has_frames) = (List::Other, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        let is_element = match byte {
            b'"' => {
                let Some(behind) = behind_string(bytes, at) else { break };
                at = behind;
                depth == 2 && list == List::Frames && place.is_some()
            }
            b'[' | b'{' => {
                depth += 1;
                if depth == 2 {
                    list = list_of(&text[..at - 1]);
                    has_frames |= list == List::Frames;
                }
                false
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                (depth == 2 && list == List::Points) || (depth == 1 && place.is_some())
            }
            _ => false,
        };
        if is_element {
            place = Some(Place { at, is_in_list: depth == 2, has_frames });
        }
    }
    place
}

/// Returns which list begins behind this text.
fn list_of(before: &str) -> List {
    let key = before.trim_end().strip_suffix(':').unwrap_or_default().trim_end();
    match key {
        _ if key.ends_with("\"ftbl\"") => List::Frames,
        _ if key.ends_with("\"pps\"") || key.ends_with("\"aps\"") => List::Points,
        _ => List::Other,
    }
}

/// Returns the place behind the string whose first byte is at `start`; `None` if it has no end.
fn behind_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_closed_behind_its_last_whole_element() {
        let whole = r#"{"v":2,"pps":[{"tb":1,"fs":[1,2]},{"tb":2,"fs":[1]}],"ftbl":["[ro\"ot]","a]"]}"#;
        let one = r#"{"v":2,"pps":[{"tb":1,"fs":[1,2]}],"ftbl":[]}"#;
        let two = r#"{"v":2,"pps":[{"tb":1,"fs":[1,2]},{"tb":2,"fs":[1]}],"ftbl":[]}"#;
        let named = r#"{"v":2,"pps":[{"tb":1,"fs":[1,2]},{"tb":2,"fs":[1]}],"ftbl":["[ro\"ot]"]}"#;
        for (behind, expected) in [
            ("\"fs\":[1,2", None),
            ("[1,2]}", Some(one)),
            ("\"fs\":[1]", Some(one)),
            ("[1]}", Some(two)),
            ("[1]}]", Some(two)),
            ("\"ftb", Some(two)),
            ("\"[ro\\\"", Some(two)),
            ("ot]\"", Some(named)),
            ("\"a]", Some(named)),
            ("\"a]\"]", Some(whole)),
        ] {
            let mut text = whole[..whole.find(behind).unwrap() + behind.len()].to_owned();
            let before = text.clone();
            assert_eq!(close(&mut text), expected.is_some(), "{behind}");
            assert_eq!(text, expected.unwrap_or(&before), "{behind}");
        }
    }

    #[test]
    fn a_table_of_frames_may_come_first() {
        let mut text = r#"{"ftbl":["[root]"],"pps":[{"fs":[0]},{"fs":[0"#.to_owned();
        assert!(close(&mut text));
        assert_eq!(text, r#"{"ftbl":["[root]"],"pps":[{"fs":[0]}]}"#);
        let mut none = r#"{"ftbl":["[root]"],"pps":["#.to_owned();
        assert!(!close(&mut none));
    }
}
