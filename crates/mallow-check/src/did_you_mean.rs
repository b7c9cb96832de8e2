//! What somebody may have meant: the known name that is nearest to a misspelled one.

/// How similar two names have to be, from 0 to 1, for a suggestion to be helpful.
const ALIKE_MIN: f64 = 0.6;

/// The known name that is most like `word`, if one is alike enough; the first of equals.
pub(crate) fn nearest<'names>(
    word: &str,
    names: impl IntoIterator<Item = &'names str>,
) -> Option<&'names str> {
    nearest_few(word, names, 1).into_iter().next()
}

/// The `most` names that are most like `word`, the most alike first.
pub(crate) fn nearest_few<'names>(
    word: &str,
    names: impl IntoIterator<Item = &'names str>,
    most: usize,
) -> Vec<&'names str> {
    let word = word.to_lowercase();
    let mut alike: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase()), name))
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .collect();
    alike.sort_by(|left, right| right.0.total_cmp(&left.0));
    alike.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_name_is_found_and_strangers_are_not() {
        let names = ["runs", "warmup", "timeout", "baselines"];
        assert_eq!(nearest("run", names), Some("runs"));
        assert_eq!(nearest("Warm_up", names), Some("warmup"));
        assert_eq!(nearest("tiemout", names), Some("timeout"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn of_several_the_most_alike_stands_first() {
        let names = ["test_pong", "test_ping_pong", "test_ping", "other"];
        assert_eq!(nearest_few("test_pin", names, 2), ["test_ping", "test_pong"]);
    }
}
