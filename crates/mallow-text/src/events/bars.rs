//! Bars made of block characters.

/// Eighths of a cell, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws columns as bars from the bottom, in a number of rows, the topmost first. Every value above 0 is visible.
pub(super) fn bars(values: &[u64], highest: u64, rows: usize) -> Vec<String> {
    let eighths = |value: u64| -> usize {
        let full = rows as u128 * 8;
        let height = (u128::from(value) * full).div_ceil(u128::from(highest.max(1)));
        height.min(full) as usize
    };
    let heights: Vec<usize> = values.iter().map(|&value| eighths(value)).collect();
    let row = |row: usize| -> String {
        let below = (rows - 1 - row) * 8;
        heights.iter().map(|height| EIGHTHS[height.saturating_sub(below).min(8)]).collect()
    };
    (0..rows).map(|at| row(at).trim_end().to_owned()).collect()
}

/// Draws a bar to the right: `part` of `whole` in `width` columns.
pub(super) fn bar(part: u64, whole: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (u128::from(part) * width as u128 * 8).div_ceil(u128::from(whole.max(1)));
    let eighths = eighths.min(width as u128 * 8) as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_rise_in_eighths() {
        assert_eq!(bars(&[0, 1, 8, 9, 16], 16, 2), ["   ▁█", " ▁███"]);
        assert_eq!(bars(&[1, 1_000_000], 1_000_000, 1), ["▁█"]);
        assert_eq!(bars(&[0, 0], 0, 2), ["", ""]);
        assert_eq!(bars(&[u64::MAX], u64::MAX, 3), ["█", "█", "█"]);
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(1, 2, 4), "██");
        assert_eq!(bar(1, 1_000, 4), "▏");
        assert_eq!(bar(0, 5, 4), "");
        assert_eq!(bar(5, 0, 3), "███");
    }
}
