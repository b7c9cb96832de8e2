//! A native stack and a script's as one.
//!
//! Each call of the function that interprets stands for the script's frames up to and including the next entry: an interpreter calls itself when
//! native code calls back, and runs the script's own calls within one call of its own. So the two are paired from the innermost
//! frame outwards. Where a stack was cut at its outer end, or a greenlet's script ends while its native stack goes on into its
//! parent's, the counts differ, and what is left over stays as it is: script frames outside of all, native ones without any.

use mallow_wire::script::script_frame;

/// The keys of the woven stack, innermost first, of those of the two. A script's frame comes in front of the call that runs it.
pub(crate) fn weave(native: &[u64], script: &[u64], interprets: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut woven = Vec::with_capacity(native.len() + script.len());
    let mut script = script.iter().copied();
    let is_shown = |key: &u64| script_frame(*key).is_some_and(|frame| frame.code != 0);
    for key in native {
        if interprets(*key) {
            for inside in script.by_ref() {
                woven.extend(Some(inside).filter(is_shown));
                if script_frame(inside).is_none_or(|frame| frame.is_entry) {
                    break;
                }
            }
        }
        woven.push(*key);
    }
    woven.extend(script.filter(is_shown));
    woven
}

/// How many calls of the interpreter each of the two stacks has.
pub(crate) fn entries(native: &[u64], script: &[u64], interprets: impl Fn(u64) -> bool) -> (usize, usize) {
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
    fn what_is_left_over_stays() {
        let (f, main) = (script_key(3, 1, true), script_key(1, 4, true));
        assert_eq!(woven(&[1, 9, 2, 9], &[f]), [1, f, 9, 2, 9]);
        assert_eq!(woven(&[1, 9], &[f, main]), [1, f, 9, main]);
        assert_eq!(woven(&[1], &[]), [1]);
    }
}
