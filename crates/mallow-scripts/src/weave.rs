//! A native stack and a script's as one.
//!
//! Each call of the function that interprets stands for the script's frames up to and including the next entry: an interpreter calls itself when
//! native code calls back, and runs the script's own calls within one call of its own. So the two are paired from the innermost
//! frame outwards. Where a stack was cut at its outer end, or a greenlet's script ends while its native stack goes on into its
//! parent's, the counts differ, and what is left over stays as it is: script frames outside of all, native ones without any. A frame at its
//! first instruction may stand there before its interpreter is called: then there is one entry too many, and it is not counted.

use mallow_wire::script::script_frame;

/// The keys of the woven stack, innermost first, of those of the two. A script's frame comes in front of the call that runs it.
pub fn weave(native: &[u64], script: &[u64], interprets: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut woven = Vec::with_capacity(native.len() + script.len());
    let is_shown = |key: &u64| script_frame(*key).is_some_and(|frame| frame.code != 0);
    let mut is_waiting = is_waiting(native, script, &interprets);
    let mut script = script.iter().copied();
    for key in native {
        if interprets(*key) {
            for inside in script.by_ref() {
                woven.extend(Some(inside).filter(is_shown));
                let is_entry = script_frame(inside).is_none_or(|frame| frame.is_entry);
                if is_entry && !is_waiting {
                    break;
                }
                is_waiting = false;
            }
        }
        woven.push(*key);
    }
    woven.extend(script.filter(is_shown));
    woven
}

/// Returns whether the innermost frame is one for which the interpreter will be called.
fn is_waiting(native: &[u64], script: &[u64], interprets: impl Fn(u64) -> bool) -> bool {
    let first = script.first().and_then(|key| script_frame(*key));
    let (calls, entered) = counts(native, script, interprets);
    entered == calls + 1 && first.is_some_and(|first| first.is_entry && first.code != 0 && first.place == 0)
}

/// How many calls of the interpreter each of the two stacks has.
pub fn entries(native: &[u64], script: &[u64], interprets: impl Fn(u64) -> bool) -> (usize, usize) {
    let (calls, entered) = counts(native, script, &interprets);
    (calls, entered - usize::from(is_waiting(native, script, interprets)))
}

fn counts(native: &[u64], script: &[u64], interprets: impl Fn(u64) -> bool) -> (usize, usize) {
    let calls = native.iter().filter(|key| interprets(**key)).count();
    let entries = script.iter().filter(|key| script_frame(**key).is_some_and(|frame| frame.is_entry));
    (calls, entries.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_wire::script::script_key;

    /// Native frames are small numbers, of which 9 interprets.
    fn woven(native: &[u64], script: &[u64]) -> Vec<u64> {
        weave(native, script, |key| key == 9)
    }

    #[test]
    fn frames_stand_in_front_of_the_call_that_runs_them() {
        let (f, g, main) = (script_key(3, 1, false), script_key(2, 7, true), script_key(1, 4, true));
        assert_eq!(woven(&[1, 9, 2, 9, 3], &[f, g, main]), [1, f, g, 9, 2, main, 9, 3]);
        assert_eq!(entries(&[1, 9, 2, 9, 3], &[f, g, main], |key| key == 9), (2, 2));
        // An entry that is no frame: the interpreter was called, and has no frame yet or none any more.
        let shim = script_key(0, 0, true);
        assert_eq!(woven(&[1, 9, 2, 9, 3], &[shim, f, shim]), [1, 9, 2, f, 9, 3]);
    }

    #[test]
    fn a_frame_whose_call_is_still_to_come_is_part_of_its_callers_segment() {
        let (next, main) = (script_key(3, 0, true), script_key(1, 4, true));
        assert_eq!(woven(&[1, 2, 9, 3], &[next, main]), [1, 2, next, main, 9, 3]);
        assert_eq!(entries(&[1, 2, 9, 3], &[next, main], |key| key == 9), (1, 1));
        assert_eq!(woven(&[1, 9, 2, 9], &[next, main]), [1, next, 9, 2, main, 9]);
        // One that has begun has lost its call at the cut end of the stack.
        assert_eq!(entries(&[1, 9], &[script_key(3, 1, true), main], |key| key == 9), (1, 2));
    }

    #[test]
    fn what_is_left_over_stays() {
        let (f, main) = (script_key(3, 1, true), script_key(1, 4, true));
        assert_eq!(woven(&[1, 9, 2, 9], &[f]), [1, f, 9, 2, 9]);
        assert_eq!(woven(&[1, 9], &[f, main]), [1, f, 9, main]);
        assert_eq!(woven(&[1], &[]), [1]);
    }
}
