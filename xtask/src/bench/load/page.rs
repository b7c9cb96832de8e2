//! The table for people, and the single turns for whoever wants to compute again.

use super::{CONNECTIONS, Measured, Tool};
use crate::bench::machine::Machine;
use crate::bench::plan::Plan;
use crate::bench::tables::table;
use mallow_base::median;

/// What ours has to reach: all of hey's rate and 70 % of wrk's.
const BARS: [(Tool, f64); 2] = [(Tool::Hey, 1.0), (Tool::Wrk, 0.7)];
/// Memory after ten times the requests may differ by so much.
const GROWTH_MAX_BYTES: u64 = 1 << 20;

pub(super) fn page(machine: &Machine, measured: &Measured, plan: &Plan) -> String {
    let Machine { date, cpu, cores, kernel, rustc, commit, load } = machine;
    let mut text = format!(
        "# The load generator, {date}\n\n\
         - {cpu}, {cores} cores, Linux {kernel}\n\
         - commit {commit}; {rustc}\n\
         - nginx with one worker and a file of 17 bytes on the same cores; {CONNECTIONS} connections, kept\n\
         - rounds: {}; in each round every tool once, beginning with another one. Load before: {load:.2}.\n{}",
        plan.rounds,
        machine.doubts(plan.quick)
    );
    let cells = Tool::ALL.map(|tool| {
        let (median, lowest, highest) = summary(&rates(measured, tool));
        let rate = |value: f64| format!("{value:.0}");
        vec![tool.name().to_owned(), rate(median), rate(lowest), rate(highest)]
    });
    text.push('\n');
    text.push_str(&table(&["tool", "requests/s", "lowest", "highest"], cells.into()));
    text.push('\n');
    for (tool, bar) in BARS {
        let ratios: Vec<f64> = rates(measured, Tool::Mallow)
            .iter()
            .zip(rates(measured, tool))
            .map(|(ours, its)| ours / its)
            .collect();
        let (median, lowest, highest) = summary(&ratios);
        let verdict = if median >= bar { "reached" } else { "missed" };
        text.push_str(&format!(
            "- mallow / {}: {median:.2} ({lowest:.2} to {highest:.2}); {bar:.1} is asked for: {verdict}\n",
            tool.name()
        ));
    }
    text.push_str(&memory(measured));
    text
}

fn memory(measured: &Measured) -> String {
    let mut text = String::new();
    for peak in &measured.peaks {
        let kib = peak.bytes >> 10;
        text.push_str(&format!("- {} requests: {kib} KiB resident at most\n", peak.requests));
    }
    if let [few, many] = measured.peaks.as_slice() {
        let is_bounded = many.bytes <= few.bytes + GROWTH_MAX_BYTES;
        let verdict = if is_bounded { "within" } else { "beyond" };
        text.push_str(&format!("- memory after ten times the requests: {verdict} 1 MiB of the same\n"));
    }
    text
}

/// Of every round, in their order.
fn rates(measured: &Measured, tool: Tool) -> Vec<f64> {
    let mut turns: Vec<_> = measured.turns.iter().filter(|turn| turn.tool == tool).collect();
    turns.sort_by_key(|turn| turn.round);
    turns.iter().map(|turn| turn.rate).collect()
}

/// Median, lowest and highest.
fn summary(values: &[f64]) -> (f64, f64, f64) {
    let (lowest, highest) =
        (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
    (median(values.iter().copied()).unwrap_or(0.0), lowest.unwrap_or(0.0), highest.unwrap_or(0.0))
}

pub(super) fn csv(measured: &Measured) -> String {
    let mut csv = String::from("tool,round,requests_per_s,requests,resident_bytes_max\n");
    for turn in &measured.turns {
        csv.push_str(&format!("{},{},{:.1},,\n", turn.tool.name(), turn.round, turn.rate));
    }
    for peak in &measured.peaks {
        csv.push_str(&format!("mallow,,,{},{}\n", peak.requests, peak.bytes));
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::super::{Peak, Turn};
    use super::*;

    fn measured(ours: [f64; 3], many_bytes: u64) -> Measured {
        let mut turns = Vec::new();
        for (index, rate) in ours.into_iter().enumerate() {
            let round = index as u32 + 1;
            turns.push(Turn { round, tool: Tool::Wrk, rate: 1000.0 });
            turns.push(Turn { round, tool: Tool::Mallow, rate });
            turns.push(Turn { round, tool: Tool::Hey, rate: 500.0 });
        }
        let peaks = vec![Peak { requests: 10, bytes: 5 << 20 }, Peak { requests: 100, bytes: many_bytes }];
        Measured { turns, peaks }
    }

    #[test]
    fn ratios_are_those_of_a_round() {
        let plan = Plan { rounds: 3, ..Plan::default() };
        let text = page(&Machine::default(), &measured([800.0, 900.0, 600.0], 6 << 20), &plan);
        assert!(text.contains("| mallow |        800 |    600 |     900 |\n"), "{text}");
        assert!(text.contains("- mallow / hey: 1.60 (1.20 to 1.80); 1.0 is asked for: reached\n"), "{text}");
        assert!(text.contains("- mallow / wrk: 0.80 (0.60 to 0.90); 0.7 is asked for: reached\n"), "{text}");
        assert!(text.contains("within 1 MiB"), "{text}");
    }

    #[test]
    fn what_is_missed_is_said() {
        let text = page(&Machine::default(), &measured([400.0, 400.0, 400.0], 7 << 20), &Plan::default());
        assert_eq!(text.matches("missed").count(), 2, "{text}");
        assert!(text.contains("beyond 1 MiB"), "{text}");
    }
}
