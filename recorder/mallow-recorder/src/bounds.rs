//! Elements and parts of arrays, for a library that must not end its host.
//!
//! Rust checks an index, and panics when it is wrong. Here a wrong one ends the recording: the header says so, the caller goes on
//! with an element that is there, and the program does not notice. It costs what the check costs. `cargo xtask recorder` holds the
//! shipped library to having no other check.

use crate::process;

/// The element of an array.
#[inline(always)]
pub fn at<T, const N: usize>(array: &[T; N], index: usize) -> &T {
    match array.get(index) {
        Some(element) => element,
        None => {
            process::invariant_broke();
            &array[0]
        }
    }
}

/// The element of an array, to be changed.
#[inline(always)]
pub fn at_mut<T, const N: usize>(array: &mut [T; N], index: usize) -> &mut T {
    let in_bounds = index < N;
    if !in_bounds {
        process::invariant_broke();
    }
    &mut array[if in_bounds { index } else { 0 }]
}

/// The first elements of a list.
#[inline(always)]
pub fn first<T>(list: &[T], count: usize) -> &[T] {
    part(list, 0, count)
}

/// The elements from `start` to before `end`.
#[inline(always)]
pub fn part<T>(list: &[T], start: usize, end: usize) -> &[T] {
    match list.get(start..end) {
        Some(part) => part,
        None => {
            process::invariant_broke();
            &[]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_in_bounds_returns_the_element() {
        let mut array = [10, 11, 12, 13];
        assert_eq!(
            (*at(&array, 3), first(&array, 2), part(&array, 1, 3)),
            (13, &[10, 11][..], &[11, 12][..])
        );
        *at_mut(&mut array, 3) = 23;
        assert_eq!((first(&array, 0), part(&array, 4, 4), array), (&[][..], &[][..], [10, 11, 12, 23]));
    }

    #[test]
    fn an_index_out_of_bounds_ends_the_recording_only() {
        let mut array = [10, 11, 12, 13];
        assert_eq!((*at(&array, 4), *at_mut(&mut array, usize::MAX)), (10, 10));
        assert_eq!((first(&array, 5), part(&array, 3, 2)), (&[][..], &[][..]));
        assert!(process::has_ended());
    }
}
