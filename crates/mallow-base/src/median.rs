//! The middle of some numbers.

/// The median, of an even number the mean of the two in the middle; none of nothing. What is not a number counts as the largest.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    Some(match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => f64::midpoint(lower, upper),
        _ => upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([]), None);
        assert_eq!(median([f64::MAX, f64::MAX]), Some(f64::MAX));
    }
}
