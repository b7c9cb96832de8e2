//! Reports of CPU profiles: the summary at the end of `mallow cpu`, and what `mallow report` shows of such a profile.

mod annotate;
mod tree;

pub use annotate::{WithSource, annotated};

use crate::columns::Columns;
use crate::functions::{FunctionTable, ROWS, function_name};
use crate::report::whole_frame;
use crate::wording::{again, without_names};
use crate::{Style, cut_end, frame_text, grouped, metric, part_words, plural, printable, shell_word};
use mallow_base::{Frame, Micros, Percent};
use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals, Quality};
use mallow_stacks::{Metric, StackProfile};
use mallow_view::{
    CpuLayout, CpuOptions, FrameVisibility, FunctionOrder, Piece, Sites, WaitRow, cpu_slices, cpu_threads,
    cut, functions, lines, peek, short_name, waits,
};
use std::time::Duration;

/// Functions in the summary.
const SUMMARY_ROWS: usize = 10;
/// Functions in the summary of waits.
const SUMMARY_WAITS: usize = 5;
/// A longer time without a sample is reported.
const NOT_SEEN_NS: u64 = 1_000_000;
/// Stacks in a report.
const STACKS: usize = 10;
/// The maximum number of lines of a stack; beyond it, its middle is left out.
const STACK_LINES_MAX: usize = 12;
/// Columns before the name of a waiting thread.
const WAIT_INDENT: usize = 19;

/// Returns the summary of a profile that was written to `file`; `collecting` is the CPU time of mallow itself.
pub fn summary(profile: &CpuProfile, file: &str, collecting: Duration, style: Style) -> String {
    let by = profile.main_metric();
    let mut out = head(profile, by, style);
    let samples = profile.quality.map_or(profile.totals().samples, |quality| quality.samples);
    if let Some(each) = collecting.checked_div(u32::try_from(samples).unwrap_or(u32::MAX)) {
        let micros = |time: Duration| Micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        out.push(style.dim(&format!("collecting took {}, {} a sample", micros(collecting), micros(each))));
    }
    let shown = FrameVisibility::WithoutStart;
    let rows = functions(profile, shown, &Default::default(), by, FunctionOrder::Own);
    if rows.is_empty() {
        out.push(nothing_sampled(profile).to_owned());
    } else {
        out.push(String::new());
        let shown = &rows[..rows.len().min(SUMMARY_ROWS)];
        out.extend(table(profile, by, false, style).lines(shown, SUMMARY_ROWS));
    }
    if profile.known.blocked && profile.totals().blocked_ns > 0 {
        out.extend([String::new(), style.bold("where threads were blocked")]);
        out.extend(wait_table(profile, style));
    }
    let drawn = shell_word(&format!("{}.svg", file.strip_suffix(".pb.gz").unwrap_or(file)));
    let file = shell_word(file);
    out.push(String::new());
    out.push(format!("next: mallow report {file} --tree=callees"));
    if profile.known.blocked {
        out.push(format!("      mallow report {file} --tree=callees --metric blocked"));
    }
    out.push(format!("      mallow flamegraph {file} -o {drawn}"));
    out.join("\n") + "\n"
}

/// Returns the report.
pub fn report(profile: &CpuProfile, options: &CpuOptions, style: Style) -> String {
    let mut out = head(profile, options.by, style);
    out.extend(part(profile, options, style));
    out.extend(selected(profile, options));
    out.push(String::new());
    let by = options.by;
    match &options.layout {
        CpuLayout::Functions(order) => {
            let rows = functions(profile, options.shown, &options.filter, by, *order);
            let is_whole = options.shown == FrameVisibility::All;
            out.extend(table(profile, by, is_whole, style).lines(&rows, options.limit.unwrap_or(ROWS)));
        }
        CpuLayout::Peek(wanted) => {
            let peeks = peek(profile, options.shown, &options.filter, wanted, by);
            let is_whole = options.shown == FrameVisibility::All;
            out.extend(table(profile, by, is_whole, style).peeks(&peeks, wanted, options.limit));
        }
        CpuLayout::Stacks => out.extend(stacks(profile, options, style)),
        CpuLayout::Tree { .. } => out.extend(tree::tree(profile, options, style)),
        CpuLayout::Threads => out.extend(threads(profile, by, options.limit, style)),
        CpuLayout::Timeline => out.extend(timeline(profile, by, style)),
    }
    let unnamed = Sites::of(profile, options.shown, &options.filter);
    out.extend(without_names(&unnamed.modules_without_names(), style.width, true));
    out.join("\n") + "\n"
}

/// Returns what was sampled, how, and how reliable it is.
fn head(profile: &CpuProfile, by: CpuMetric, style: Style) -> Vec<String> {
    let recording = &profile.recording;
    let totals = profile.totals();
    let mut end = metric(by, by.of_site(&totals));
    if by == CpuMetric::Time {
        end += " on processors";
    } else if by == CpuMetric::OffCpu {
        end += " off the processors";
    } else if by == CpuMetric::Blocked {
        end += " blocked";
    } else if by == CpuMetric::Events && !recording.event.is_empty() {
        end = format!("{end} {}", recording.event);
    } else {
        end = format!("{end} {}", by.subject());
    }
    if recording.duration_ns > 0 {
        end += &format!(" in {}", Micros(recording.duration_ns / 1000));
    }
    let command = if recording.command.is_empty() {
        profile.processes.first().map_or("a program that is not named", |process| &process.name).to_owned()
    } else {
        recording.command.join(" ")
    };
    let left = style.width.saturating_sub(end.columns() + 2);
    let mut out = vec![format!("{}: {end}", style.bold(&cut_end(&printable(&command), left)))];
    let mut how = vec![plural(totals.samples, "sample")];
    if !recording.event.is_empty() {
        let hz = recording.frequency_hz.map(|hz| format!(" at {} Hz", grouped(hz))).unwrap_or_default();
        how.push(format!("{}{hz}", recording.event));
    }
    if profile.processes.len() > 1 {
        how.push(plural(profile.processes.len() as u64, "process"));
    }
    if profile.threads.len() > profile.processes.len() {
        how.push(plural(profile.threads.len() as u64, "thread"));
    }
    out.push(how.join(", "));
    out.extend(off_cpu(profile));
    out.extend(profile.quality.iter().flat_map(|quality| trust(quality, profile.known.switches)));
    out
}

/// Says why there is no sample.
fn nothing_sampled(profile: &CpuProfile) -> &'static str {
    /// Several times as long as there is between two samples.
    const MUCH_NS: u64 = 20_000_000;
    match profile.quality.and_then(|quality| quality.not_seen_ns) {
        Some(not_seen_ns) if not_seen_ns >= MUCH_NS => {
            "nothing was sampled: the library with the timers was not in what took the time,\na static program or one with an environment of its own"
        }
        _ => "nothing was sampled: it took no time, or less than there is between two samples",
    }
}

/// Formats `off processors 1.98 s in 12 waits: 1.97 s blocked, 10 ms ready to run`.
fn off_cpu(profile: &CpuProfile) -> Option<String> {
    if !profile.known.off_cpu {
        return None;
    }
    let CpuTotals { off_cpu_ns, blocked_ns, switches, .. } = profile.totals();
    let time = |nanos| metric(CpuMetric::OffCpu, nanos);
    let count =
        if profile.known.switches { format!(" in {}", plural(switches, "wait")) } else { String::new() };
    let why = if profile.known.blocked {
        format!(
            ": {} blocked, {} ready to run",
            time(blocked_ns),
            time(off_cpu_ns.saturating_sub(blocked_ns))
        )
    } else {
        String::new()
    };
    Some(format!("off processors {}{count}{why}", time(off_cpu_ns)))
}

/// Formats `whole stacks 99.4%, 3 too deep (--stack-size), none lost`, and what is missing.
fn trust(quality: &Quality, has_waits: bool) -> Vec<String> {
    let with_program = quality.samples.saturating_sub(quality.kernel_only);
    let mut parts = Vec::new();
    if with_program > 0 {
        parts.push(format!("whole stacks {}", Percent { part: quality.whole, whole: with_program }));
    }
    if quality.too_deep > 0 {
        parts.push(format!("{} too deep (--stack-size)", grouped(quality.too_deep)));
    }
    let other = quality.truncated().saturating_sub(quality.too_deep);
    if other > 0 {
        parts.push(format!("{} end early", grouped(other)));
    }
    if quality.lost == 0 {
        parts.push("none lost".to_owned());
    }
    let mut out = vec![parts.join(", ")];
    out.retain(|line| !line.is_empty());
    if quality.lost > 0 {
        let lost = plural(quality.lost, "sample");
        let cure =
            if has_waits { "a smaller --stack-size leaves more room" } else { "-F takes fewer of them" };
        out.push(format!("{lost} lost, so all times are too low; {cure}"));
    }
    if !quality.kernel_seen {
        out.push("what the kernel does is not seen".to_owned());
    }
    if let Some(not_seen_ns) = quality.not_seen_ns.filter(|nanos| *nanos >= NOT_SEEN_NS) {
        out.push(format!("{} more on processors in no sample", Micros(not_seen_ns / 1000)));
    }
    out
}

fn share(profile: &CpuProfile, by: CpuMetric, part: u64) -> String {
    Percent { part, whole: by.of_site(&profile.totals()) }.to_string()
}

fn table(profile: &CpuProfile, by: CpuMetric, is_whole: bool, style: Style) -> FunctionTable<CpuMetric> {
    FunctionTable { by, whole: by.of_site(&profile.totals()), beside: None, is_whole, style }
}

/// Returns which part of the recording is shown, and its share.
fn part(profile: &CpuProfile, options: &CpuOptions, style: Style) -> Vec<String> {
    let Some(part) = &options.part else { return Vec::new() };
    let (left, whole) = (options.by.of_site(&profile.totals()), options.by.of_site(&part.whole));
    let share = Percent { part: left, whole };
    let mut lines = part_words(part.window, part.filter.as_deref());
    lines.push(format!("leaves {} of {} ({share})", metric(options.by, left), metric(options.by, whole)));
    lines.iter().map(|line| cut_end(line, style.width)).collect()
}

/// With a filter, returns what it selected.
fn selected(profile: &CpuProfile, options: &CpuOptions) -> Vec<String> {
    if options.filter.is_empty() {
        return Vec::new();
    }
    let sites = Sites::of(profile, options.shown, &options.filter);
    let part = options.by.of_site(&sites.totals());
    let words = [("function", &options.filter.function), ("module", &options.filter.module)];
    let words: Vec<String> = words
        .into_iter()
        .filter_map(|(what, text)| Some(format!("{what} \"{}\"", printable(text.as_ref()?))))
        .collect();
    let (value, share) = (metric(options.by, part), share(profile, options.by, part));
    vec![String::new(), format!("stacks with {}: {value}, {share}", words.join(" and "))]
}

/// Formats `  240 ms   82.8%  rows::parse::take  [rows], in pthread_cond_wait`.
fn wait_table(profile: &CpuProfile, style: Style) -> Vec<String> {
    let whole = profile.totals().blocked_ns;
    let row = |row: &WaitRow<'_>| {
        let blocked_ns = row.totals.blocked_ns;
        let percent = Percent { part: blocked_ns, whole }.to_string();
        let metrics = format!("{:>9} {percent:>7}", metric(CpuMetric::Blocked, blocked_ns));
        let called = row.called.map(|frame| format!(", in {}", printable(&short_name(&frame.function))));
        let called = called.unwrap_or_default();
        let width = style.name_width(WAIT_INDENT).saturating_sub(called.columns());
        let name = function_name(row.caller, row.caller.function.starts_with("0x"), false, width) + &called;
        format!("{}  {}", style.bold(&metrics), cut_end(&name, style.name_width(WAIT_INDENT)))
    };
    waits(profile).iter().take(SUMMARY_WAITS).map(row).collect()
}

/// Returns the top stacks.
fn stacks(profile: &CpuProfile, options: &CpuOptions, style: Style) -> Vec<String> {
    let by = options.by;
    let mut sites = Sites::of(profile, options.shown, &options.filter);
    sites.sort(by);
    let concerned: Vec<_> = sites.rows.iter().filter(|row| by.of_site(&row.totals) > 0).collect();
    let value = metric(by, by.of_site(&sites.totals()));
    let mut out = vec![
        format!("{}: {value} at {}", style.bold(by.word()), plural(concerned.len() as u64, "stack")),
        String::new(),
    ];
    let limit = options.limit.unwrap_or(STACKS);
    for row in concerned.iter().take(limit) {
        let part = by.of_site(&row.totals);
        let values = format!("{:>10}", metric(by, part));
        out.push(format!("{}  {:>6}", style.bold(&values), share(profile, by, part)));
        let frames = lines(sites.frames(row), options.shown);
        let all = options.shown == FrameVisibility::All;
        let width = style.name_width(12);
        let line = |frame: &Frame, times: usize| {
            let times = if times > 1 { format!("  × {}", grouped(times as u64)) } else { String::new() };
            let text = if all {
                whole_frame(frame)
            } else {
                frame_text(Some(frame), width.saturating_sub(times.columns()))
            };
            format!("{:12}{text}{times}", "")
        };
        if frames.is_empty() {
            out.push(format!("{:12}{}", "", frame_text(None, width)));
        }
        let pieces = if all {
            frames.iter().copied().map(Piece::Line).collect()
        } else {
            cut(&frames, STACK_LINES_MAX)
        };
        out.extend(pieces.iter().map(|piece| match piece {
            Piece::Line(shown) => line(shown.frame, shown.times),
            Piece::Again { lines, times } => format!("{:12}{}", "", style.dim(&again(*lines, *times))),
            Piece::Gap(count) => {
                format!("{:12}{}", "", style.dim(&format!("… {count} more; use --all-frames to see them")))
            }
        }));
        out.push(String::new());
    }
    if concerned.len() > limit {
        let more = plural((concerned.len() - limit) as u64, "more stack");
        out.push(style.dim(&format!("{more} not shown; use --top to see more")));
    } else {
        out.pop();
    }
    out
}

fn threads(profile: &CpuProfile, by: CpuMetric, limit: Option<usize>, style: Style) -> Vec<String> {
    let rows = cpu_threads(profile, by);
    let mut out =
        vec![style.dim(&format!("{:>10} {:>7}  {:>7} {:>7}  thread", by.word(), "", "process", "thread"))];
    for row in rows.iter().take(limit.unwrap_or(usize::MAX)) {
        let thread = &profile.threads[row.thread.0 as usize];
        let process = &profile.processes[thread.process.0 as usize];
        let part = by.of_site(&row.totals);
        let name = if thread.name == process.name {
            thread.name.clone()
        } else {
            format!("{} of {}", thread.name, process.name)
        };
        out.push(format!(
            "{}  {:>7} {:>7}  {}",
            style.bold(&format!("{:>10} {:>7}", metric(by, part), share(profile, by, part))),
            process.pid,
            thread.tid,
            cut_end(&printable(&name), style.width.saturating_sub(38))
        ));
    }
    out
}

/// Eighths of a line's height.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn timeline(profile: &CpuProfile, by: CpuMetric, style: Style) -> Vec<String> {
    let columns = style.width.saturating_sub(2).clamp(10, 200);
    let slices = cpu_slices(profile, columns);
    let most = slices.iter().map(|slice| by.of_site(slice)).max().unwrap_or(0);
    let bar = |slice: &mallow_cpu::CpuTotals| {
        let eighths = u128::from(by.of_site(slice)) * 8;
        BARS[eighths.div_ceil(u128::from(most.max(1))).min(8) as usize]
    };
    let slice_ns = profile.recording.duration_ns / columns as u64;
    let peak = match by {
        CpuMetric::Time if slice_ns > 0 => format!("{:.1} processors", most as f64 / slice_ns as f64),
        CpuMetric::OffCpu | CpuMetric::Blocked if slice_ns > 0 => {
            format!("{:.1} threads", most as f64 / slice_ns as f64)
        }
        _ => metric(by, most),
    };
    vec![
        format!(
            "{} over {}; the highest column is {peak}",
            by.subject(),
            Micros(profile.recording.duration_ns / 1000)
        ),
        slices.iter().map(bar).collect::<String>().trim_end().to_owned(),
    ]
}

/// Returns the program of a profile, for a heading.
pub fn program(profile: &CpuProfile) -> Option<&str> {
    let first = profile.recording.command.first().map(String::as_str);
    let path = first.or_else(|| profile.program(mallow_stacks::ProcessIndex(0)))?;
    path.rsplit('/').next()
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
