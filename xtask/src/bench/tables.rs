//! The page: tables that read well on a terminal of 100 columns and are Markdown at the same time.

use super::bars;
use super::large::Large;
use super::machine::Facts;
use super::metrics::{Row, geometric_mean};
use super::parts::Parts;
use mallow_base::grouped;

/// Everything that was found, facts first.
pub(super) fn page(facts: &Facts, rows: &[Row], large: Option<&Large>, parts: Option<&Parts>) -> String {
    let mut text = facts.sentences();
    if !rows.is_empty() {
        text.push_str(&wall(rows));
        text.push_str(&cpu(rows));
        text.push_str(&memory(rows));
        text.push_str(&traces(rows));
    }
    if let Some(large) = large {
        text.push_str(&largest(large));
    }
    if let Some(parts) = parts {
        text.push_str(&around(parts));
        text.push_str(&loops(parts));
    }
    text.push_str(&verdicts(rows, large, parts));
    text
}

fn around(parts: &Parts) -> String {
    let cells = parts.around.iter().map(|around| {
        let (warm, cold) = (around.warm, around.cold);
        let ms = [warm.behind_ms, cold.behind_ms, Some(warm.both_ms), Some(cold.both_ms)];
        std::iter::once(around.name.clone())
            .chain(ms.map(|ms| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))))
            .collect()
    });
    let note = "\nms of `mallow record` beside the program's own life: behind its end; before its start and behind it.\n\
                warm: with kept answers about symbols; cold: without.\n";
    let heads = ["program", "behind warm", "behind cold", "both warm", "both cold"];
    format!("\n## Around the program\n\n{}{note}", table(&heads, cells.collect()))
}

fn loops(parts: &Parts) -> String {
    let cells = parts.loops.iter().map(|it| {
        let mut cells = vec![it.threads.to_string()];
        let metric = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.1}"));
        cells.extend([Some(it.record_ns), it.collector_ns, Some(it.stat_ns)].map(metric));
        cells
    });
    let heads = ["threads", "record ns", "collector ns", "stat ns"];
    let note = "\nCPU per event of a loop of malloc and free under 10 frames: what `record` and `stat` add in the\n\
                program, and what mallow's own process takes under `record`.\n";
    let frame =
        format!("A frame that is walked anew adds {:.1} ns in the program under `record`.\n", parts.frame_ns);
    format!("\n## Per event\n\n{}{note}{frame}", table(&heads, cells.collect()))
}

fn wall(rows: &[Row]) -> String {
    let heads =
        ["program", "calls", "bare s", "+record s", "+heaptrack s", "ratio", "+stat %", "stat ns", "floor %"];
    let cells = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            grouped(row.events),
            format!("{:.3}", row.bare_wall_s),
            format!("{:.3}", row.record.wall_s),
            format!("{:.3}", row.heaptrack.wall_s),
            ratio(row.wall_ratio()),
            format!("{:.1}", row.percent(row.stat)),
            format!("{:.1}", row.per_call_ns(row.stat.wall_s)),
            format!("{:.1}", row.percent(row.least_stat)),
        ]
    });
    let mut text = String::from("\n## Added wall time\n\n");
    text.push_str(&table(&heads, cells.collect()));
    let ratios: Vec<f64> = rows.iter().filter_map(Row::wall_ratio).collect();
    let cold: Vec<f64> = rows.iter().filter_map(Row::cold_wall_ratio).collect();
    let worst = ratios.iter().copied().reduce(f64::max);
    text.push_str(&format!(
        "\nratio: mallow record / heaptrack; geometric mean {}, worst {}; without kept symbols {}.\n\
         stat ns: per call. floor: a preloaded library that adds the same sums, signals and forks left out.\n",
        ratio(geometric_mean(&ratios)),
        ratio(worst),
        ratio(geometric_mean(&cold))
    ));
    for row in rows.iter().filter(|row| row.is_server) {
        text.push_str(&format!(
            "{}: what its client waited.\nFrom start to exit: bare {:.3} s, record +{:.3} s, heaptrack +{:.3} s.\n",
            row.name, row.bare_whole_s, row.record.whole_s, row.heaptrack.whole_s
        ));
    }
    text
}

fn cpu(rows: &[Row]) -> String {
    let heads =
        ["program", "+record s", "+heaptrack s", "ratio", "record ns", "heaptrack ns", "collector s", "M/s"];
    let cells = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            format!("{:.3}", row.record.cpu_s),
            format!("{:.3}", row.heaptrack.cpu_s),
            ratio(row.cpu_ratio()),
            format!("{:.1}", row.per_call_ns(row.record.cpu_s)),
            format!("{:.1}", row.per_call_ns(row.heaptrack.cpu_s)),
            format!("{:.2}", row.collector_cpu_s),
            row.collector_millions().map_or_else(|| "-".to_owned(), |speed| format!("{speed:.1}")),
        ]
    });
    let note = "\nns: per call. collector: the CPU time of mallow's own process, symbols included, \
                and the millions of\ncalls that it takes in per second of it.\n";
    format!("\n## Added CPU time, all processes together\n\n{}{note}", table(&heads, cells.collect()))
}

fn memory(rows: &[Row]) -> String {
    let heads = ["program", "bare", "record", "heaptrack", "in the program", "threads"];
    let cells = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            megabytes(row.bare_peaks.together_bytes.cast_signed()),
            megabytes(row.record_peaks.together_bytes.cast_signed()),
            megabytes(row.heaptrack_peaks.together_bytes.cast_signed()),
            format!("+{}", megabytes(row.target_added_bytes())),
            row.record_peaks.threads.to_string(),
        ]
    });
    let note = "\nMB at the peak, all processes together, shared pages once (Pss).\n\
                \"in the program\": resident bytes that `record` adds there, its rings included.\n";
    format!("\n## Memory\n\n{}{note}", table(&heads, cells.collect()))
}

fn traces(rows: &[Row]) -> String {
    let heads = ["program", "calls", "mallow bytes", "bytes/call", "heaptrack bytes"];
    let cells = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            grouped(row.events),
            grouped(row.record_trace_bytes),
            format!("{:.3}", row.trace_bytes_per_call()),
            grouped(row.heaptrack_trace_bytes),
        ]
    });
    format!("\n## Trace\n\n{}", table(&heads, cells.collect()))
}

fn largest(large: &Large) -> String {
    let mut text = format!(
        "\n## Largest storm\n\n\
         - {} calls recorded in {:.3} s, {:.2} s of CPU in the collector; trace {} bytes\n\
         - `mallow report --sort bytes --limit 1`: {:.3} s, {} MB\n",
        grouped(large.events),
        large.record_wall_s,
        large.collector_cpu_s,
        grouped(large.trace_bytes),
        large.report_wall_s,
        megabytes(large.report_bytes.cast_signed()),
    );
    for analysis in &large.analyses {
        text.push_str(&format!(
            "- `mallow report {}`: {:.3} s, {} MB\n",
            analysis.flags,
            analysis.wall_s,
            megabytes(analysis.bytes.cast_signed())
        ));
    }
    text
}

fn verdicts(rows: &[Row], large: Option<&Large>, parts: Option<&Parts>) -> String {
    let cells = bars::of(rows, large, parts).into_iter().map(|bar| {
        let verdict = bar.verdict().to_owned();
        let sign = if bar.is_speed { "≥" } else { "≤" };
        let limit = format!("{sign} {} {}", bar.limit, bar.unit);
        let (value, program) = match bar.measured {
            Some((value, program)) => (format!("{value:.2} {}", bar.unit), program),
            None => ("-".to_owned(), "-".to_owned()),
        };
        vec![bar.what.to_owned(), limit, value, program, verdict]
    });
    let heads = ["bar", "to reach", "measured", "where", "verdict"];
    format!("\n## Bars\n\n{}", table(&heads, cells.collect()))
}

/// A Markdown table with padded cells: the first column to the left, the others to the right.
pub(super) fn table(heads: &[&str], cells: Vec<Vec<String>>) -> String {
    let mut lines = vec![heads.iter().map(|&head| head.to_owned()).collect::<Vec<String>>()];
    lines.extend(cells);
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let padded = if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text.push_str(&format!("| {padded} "));
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, &width) in widths.iter().enumerate() {
                let rule = "-".repeat(width);
                text.push_str(&if column == 0 {
                    format!("| {rule} ")
                } else {
                    format!("| {}: ", &rule[1..])
                });
            }
            text.push_str("|\n");
        }
    }
    text
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

fn megabytes(bytes: i64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::metrics::tests::drifting_row;

    #[test]
    fn the_wall_table_reads_well() {
        assert_eq!(
            wall(&[drifting_row()]),
            "
## Added wall time

| program    | calls | bare s | +record s | +heaptrack s | ratio | +stat % |  stat ns | floor % |
| ---------- | ----: | -----: | --------: | -----------: | ----: | ------: | -------: | ------: |
| storm-10x1 | 1,000 |  2.000 |     0.250 |        2.000 | 0.125 |     6.2 | 125000.0 |     3.1 |

ratio: mallow record / heaptrack; geometric mean 0.125, worst 0.125; without kept symbols 0.250.
stat ns: per call. floor: a preloaded library that adds the same sums, signals and forks left out.
"
        );
    }
}
