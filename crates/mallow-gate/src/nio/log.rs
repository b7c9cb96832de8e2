//! Logs of the framework, as they are found in CI: with other lines between, prefixes of time, colours.

/// One test of a log. What the log does not say is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTest {
    /// Without `test_` before it.
    pub name: String,
    /// The file that the runner named before it.
    pub file: Option<String>,
    /// The least number of allocations; -1 where all runs were thrown away.
    pub total_allocations: Option<i64>,
    /// The least number of allocations without a free.
    pub remaining_allocations: Option<i64>,
    /// The least number of bytes.
    pub total_allocated_bytes: Option<i64>,
    /// Descriptors of the first run that leaked any.
    pub leaked_fds: Option<i64>,
    /// Each run's number of allocations, where the log has its `DEBUG:` line.
    pub runs: Vec<i64>,
}

/// The contents of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The tests in the order in which they appear first.
    pub tests: Vec<LogTest>,
    /// Lines that the framework warns with, without their prefix.
    pub warnings: Vec<String>,
}

/// The metrics' names in lines such as `NAME.total_allocations: 75001`, today's and the old ones.
const METRICS: [(&str, Metric); 5] = [
    (".total_allocations:", Metric::Total),
    (".remaining_allocations:", Metric::Remaining),
    (".total_allocated_bytes:", Metric::Bytes),
    (".leaked_fds:", Metric::Leaked),
    (": total number of mallocs:", Metric::Total),
];

#[derive(Clone, Copy)]
enum Metric {
    Total,
    Remaining,
    Bytes,
    Leaked,
}

/// Reads a log. Lines that are not the framework's are passed over; a log without any has no tests.
pub fn read_log(text: &str) -> Log {
    let mut log = Log::default();
    let mut file = None;
    // The test of the last metric: a DEBUG line does not say whose it is.
    let mut last: Option<usize> = None;
    for line in text.lines().map(str::trim) {
        if let Some(path) = path_of(line) {
            file = Some(path.to_owned());
        } else if let Some((name, metric, value)) = metric(line) {
            let index = log.index(name, file.as_deref());
            log.tests[index].set(metric, value);
            last = Some(index);
        } else if let Some((_, runs)) = line.split_once("DEBUG: [") {
            if let Some(index) = last {
                log.tests[index].runs = totals(runs);
            }
        } else if let Some((_, warning)) = line.split_once("WARNING: ") {
            log.warnings.push(warning.trim().to_owned());
        }
    }
    log
}

impl Log {
    fn index(&mut self, name: &str, file: Option<&str>) -> usize {
        if let Some(index) = self.tests.iter().position(|test| test.name == name) {
            return index;
        }
        let file = file.map(str::to_owned);
        self.tests.push(LogTest { name: name.to_owned(), file, ..LogTest::default() });
        self.tests.len() - 1
    }
}

impl LogTest {
    /// A log that has a test twice, of two attempts, means the later.
    fn set(&mut self, metric: Metric, value: i64) {
        let place = match metric {
            Metric::Total => &mut self.total_allocations,
            Metric::Remaining => &mut self.remaining_allocations,
            Metric::Bytes => &mut self.total_allocated_bytes,
            Metric::Leaked => &mut self.leaked_fds,
        };
        *place = Some(value);
    }
}

/// `- /path/to/test_x.swift`
fn path_of(line: &str) -> Option<&str> {
    let (before, path) = line.split_once("- ").filter(|(_, path)| path.contains('/'))?;
    // CI puts the time before the line; nothing else may be there.
    let is_time =
        before.chars().all(|c| c.is_ascii_digit() || matches!(c, 'T' | 'Z' | ':' | '.' | '-' | ' '));
    (is_time && !path.contains(' ')).then_some(path)
}

fn metric(line: &str) -> Option<(&str, Metric, i64)> {
    METRICS.into_iter().find_map(|(word, metric)| {
        let (name, value) = line.split_once(word)?;
        // A prefix of CI ends in a blank, and names have none.
        let name = name.rsplit([' ', '\t', '|']).next()?;
        let name = name.strip_prefix("test_").unwrap_or(name);
        let value = value.trim().parse().ok()?;
        (!name.is_empty()).then_some((name, metric, value))
    })
}

/// Each run's total in a DEBUG line of today (`totalAllocations: 75001`) or of before (`"total_allocations": 75001`).
fn totals(runs: &str) -> Vec<i64> {
    let word = if runs.contains("totalAllocations") { "totalAllocations" } else { "total_allocations\"" };
    runs.split(word)
        .skip(1)
        .filter_map(|rest| {
            let digits = rest.trim_start_matches([':', ' ']);
            let end = digits.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(digits.len());
            digits[..end].parse().ok()
        })
        .collect()
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
