//! Compares a report with the numbers that a hazard program states, one by one.

use crate::program::{Program, string};
use crate::session::metric;
use crate::stacks;
use serde_json::Value;
use std::path::Path;

/// What differs, one line per metric; empty when everything is as stated.
pub type Differences = Vec<String>;

/// Compares the processes of a report or of a run of `stat` with the stated ones.
#[must_use]
pub fn of_processes(document: &Value, stated: &[Value], program: &Program, path: &Path) -> Differences {
    let mut differences = Vec::new();
    let mut found: Vec<&Value> = document["processes"].as_array().into_iter().flatten().collect();
    if found.len() != stated.len() {
        differences.push(format!("processes: expected {}, found {}", stated.len(), found.len()));
    }
    sum_of_processes(document, &found, &mut differences);
    for (index, wanted) in stated.iter().enumerate() {
        let end = program.filled(&string(&wanted["command_ends_with"]), path);
        let name = format!("process {index} (… {end})");
        let is_it = |process: &&Value| command(process).ends_with(&end) && has_exit(process, &wanted["exit"]);
        // With no such entry the next one is compared, so that a wrong name does not hide the metrics.
        let place = found.iter().position(is_it).or((!found.is_empty()).then_some(0));
        let Some(place) = place else {
            differences.push(format!("{name}: not found"));
            continue;
        };
        let process = found.remove(place);
        if !is_it(&process) {
            differences.push(format!(
                "{name}: expected exit {}, found command {:?} with exit {}",
                wanted["exit"],
                command(process),
                process["exit"]
            ));
        }
        of_metrics(&name, &wanted["totals"], &process["totals"], &mut differences);
    }
    differences
}

/// Compares every stated site with the sum of the report's rows that belong to it.
#[must_use]
pub fn of_sites(report: &Value, stated: &[Value], own: &Path) -> Differences {
    let mut differences = Vec::new();
    for site in stated {
        let rows = stacks::of_site(report, site, own);
        let name = format!("site {}", string(&site["function"]));
        for (key, value) in site.as_object().into_iter().flatten() {
            let Some(wanted) = value.as_u64() else { continue };
            let found = match key.as_str() {
                "stacks" => rows.len() as u64,
                _ => rows.iter().map(|row| metric(row, key)).sum(),
            };
            if wanted != found {
                differences.push(format!("{name}: {key}: expected {wanted}, found {found}"));
            }
        }
        if rows.is_empty() {
            differences.push(format!("{name}: no stack fits; the functions are {:?}", owners(report, own)));
        }
        if let Some(depth) = site.get("depth") {
            of_depth(&name, depth, &rows, &mut differences);
        }
    }
    differences
}

/// Compares the metrics that `wanted` names, and no others.
pub fn of_metrics(name: &str, wanted: &Value, found: &Value, differences: &mut Differences) {
    for (key, value) in wanted.as_object().into_iter().flatten() {
        if found[key] != *value {
            differences.push(format!("{name}: {key}: expected {value}, found {}", found[key]));
        }
    }
}

/// The totals must be the sums of the processes.
fn sum_of_processes(document: &Value, processes: &[&Value], differences: &mut Differences) {
    for (key, value) in document["totals"].as_object().into_iter().flatten() {
        let sum: u64 = processes.iter().map(|process| metric(&process["totals"], key)).sum();
        if value.as_u64() != Some(sum) {
            differences.push(format!("totals: {key}: expected the processes' sum {sum}, found {value}"));
        }
    }
}

fn of_depth(name: &str, depth: &Value, rows: &[&Value], differences: &mut Differences) {
    let function = string(&depth["function"]);
    let occurrences =
        |row: &&Value| stacks::names(row).iter().filter(|frame| **frame == function).count() as u64;
    let mut found: Vec<u64> = rows.iter().map(occurrences).collect();
    found.sort_unstable();
    let wanted: Vec<u64> =
        depth["frames"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    if wanted != found {
        differences.push(format!("{name}: frames of {function}: expected {wanted:?}, found {found:?}"));
    }
}

fn command(process: &Value) -> &str {
    process["command"].as_str().unwrap_or_default()
}

/// A stated exit is a status, `{"signal": N}` or `"exec"`; the report writes the last one `{"exec": true}`.
fn has_exit(process: &Value, stated: &Value) -> bool {
    match stated.as_str() {
        Some("exec") => process["exit"]["exec"] == true,
        _ => process["exit"] == *stated,
    }
}

fn owners(report: &Value, own: &Path) -> Vec<String> {
    let rows = report["sites"].as_array().into_iter().flatten();
    let mut owners: Vec<String> = rows.filter_map(|row| stacks::owner(row, own)).collect();
    owners.sort();
    owners.dedup();
    owners.truncate(20);
    owners
}
