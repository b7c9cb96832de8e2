//! The table as it is shown, in 80 columns and in more.

use super::*;
use insta::assert_snapshot;
use mallow_samples::soak as sample;

fn shown(style: Style, is_terminal: bool) -> (Live, String) {
    let mut live = Live::new(style, is_terminal);
    let report = sample::leaking();
    let mut text = live.text(&Progress::Phase(Phase::Idle));
    for sample in report.samples.iter().take(7) {
        text.push_str(&live.text(&Progress::Sample(sample)));
    }
    text.push_str(&live.text(&Progress::Extended(20)));
    (live, text)
}

#[test]
fn plain_lines_for_a_file() {
    let (_, text) = shown(Style::PLAIN, false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    assert_snapshot!(text);
}

#[test]
fn a_server_that_has_ended_has_no_memory_to_show() {
    let mut report = sample::leaking();
    let sample = report.samples.last_mut().unwrap();
    (sample.processes, sample.heap, sample.memory_trimmed) = (0, None, None);
    let line = line(None, sample, true);
    assert!(line.ends_with("        -         -    -   -"), "{line}");
}

#[test]
fn a_wide_terminal_has_room_for_more() {
    let (_, text) = shown(Style { width: 120, ..Style::PLAIN }, false);
    let heads: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        heads,
        [
            "#", "phase", "requests", "req/s", "p50", "p99", "worst", "err", "heap", "B/req", "RSS",
            "trimmed", "fds", "thr"
        ]
    );
    let widths: Vec<usize> = text.lines().take(7).map(|line| line.chars().count()).collect();
    assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
}

#[test]
fn a_terminal_has_the_courses_below_and_draws_them_again() {
    let (live, text) = shown(Style::PLAIN, true);
    assert_eq!(live.below, 3);
    let last = text.rsplit("\x1b[3A\x1b[J").next().unwrap_or_default();
    assert_snapshot!(last);
    assert!(last.lines().all(|line| line.chars().count() <= 80), "{last}");
}

#[test]
fn a_course_of_any_length_takes_the_same_room() {
    let mut phases = Phases::default();
    for at in 0..100_000 {
        phases.push(f64::from(at));
    }
    assert!(phases.values.len() <= COURSE_MAX && phases.waiting.len() < phases.each.max(1));
    let line = phases.line("heap", 80).unwrap_or_default();
    assert!(line.chars().count() <= 80, "{line}");
    assert!(line.contains('▁') && line.contains('█'), "{line}");
}

#[test]
fn noise_is_drawn_flat() {
    let mut phases = Phases::default();
    [10_000_000.0, 10_010_000.0, 10_000_000.0].into_iter().for_each(|value| phases.push(value));
    assert_eq!(phases.line("RSS", 80).as_deref(), Some(" RSS ▁▁▁ 9.54 MiB to 9.54 MiB"));
}

#[test]
fn times_are_five_columns() {
    let times = [7, 999, 1000, 9949, 9950, 999_499, 999_500, 30_000_000].map(short_time);
    assert_eq!(times, ["7µs", "999µs", "1.0ms", "9.9ms", "10ms", "999ms", "1.0s", "30s"]);
}

#[test]
fn a_column_of_errors_stays_apart_from_the_one_before_it() {
    let shown = [0, 850, 999, 1000, 9_949, 9_950, 20_867, 999_499, 999_500, 12_000_000].map(short_count);
    assert_eq!(shown, ["0", "850", "999", "1.0k", "9.9k", "10k", "21k", "999k", "1M", "12M"]);
}
