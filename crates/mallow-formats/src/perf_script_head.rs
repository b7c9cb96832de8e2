//! Parses the first line of a sample in the text of `perf script`, by which such a text is recognised.

/// The first line of a sample.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    /// The thread's name.
    pub(crate) name: String,
    /// The process, if it is shown in addition to the thread.
    pub(crate) pid: Option<u32>,
    pub(crate) tid: u32,
    pub(crate) time_ns: u64,
    /// The period of the sample.
    pub(crate) period: Option<u64>,
    /// The event's name, without its precision.
    pub(crate) event: String,
}

/// Returns whether a line begins a sample.
pub(crate) fn is_head(line: &str) -> bool {
    head(line).is_some()
}

/// Parses a line that begins a sample.
pub(crate) fn head(line: &str) -> Option<Head> {
    if line.starts_with([' ', '\t', '#']) {
        return None;
    }
    // The time is the first word that is a number with a point and ends with a colon; names may contain blanks.
    let mut at = 0;
    let (time_ns, front, rest) = line.split_inclusive(char::is_whitespace).find_map(|word| {
        let start = at;
        at += word.len();
        Some((time_of(word.trim())?, &line[..start], &line[at..]))
    })?;
    let mut front = front.trim_end();
    if let Some(without) = front.strip_suffix(']').and_then(|front| front.rsplit_once('[')) {
        front = without.0.trim_end();
    }
    let (name, ids) = front.rsplit_once(char::is_whitespace)?;
    let (pid, tid) = match ids.split_once('/') {
        Some((pid, tid)) => (Some(pid.parse().ok()?), tid.parse().ok()?),
        None => (None, ids.parse().ok()?),
    };
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let (period, event) = match first.parse() {
        Ok(period) => (Some(period), words.next()?),
        Err(_) => (None, first),
    };
    let event = event.strip_suffix(':')?;
    Some(Head { name: name.trim().to_owned(), pid, tid, time_ns, period, event: bare(event).to_owned() })
}

/// Parses `36928.600015:` into nanoseconds.
fn time_of(word: &str) -> Option<u64> {
    let (seconds, part) = word.strip_suffix(':')?.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let part_ns = part.parse::<u64>().ok()? * 10_u64.pow(9 - part.len() as u32);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part_ns)
}

/// Removes the precision of `cpu-clock:ppp`, and the PMU of `cpu_core/cycles/`.
fn bare(event: &str) -> &str {
    let event = event.split(':').next().unwrap_or(event);
    event.trim_end_matches('/').rsplit('/').next().unwrap_or(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_in_several_shapes() {
        let of = |line: &str| {
            head(line).map(|head| (head.name, head.pid, head.tid, head.time_ns, head.period, head.event))
        };
        let expected = |name: &str, pid, tid, period, event: &str| {
            Some((name.to_owned(), pid, tid, 36_928_600_015_000, period, event.to_owned()))
        };
        assert_eq!(
            of("spin 26293 36928.600015:     250000 cpu-clock:ppp: "),
            expected("spin", None, 26293, Some(250_000), "cpu-clock")
        );
        assert_eq!(
            of("Web Content 7/9 [001] 36928.600015: cycles:u:"),
            expected("Web Content", Some(7), 9, None, "cycles")
        );
        assert_eq!(
            of("a:1.5 b 9 [000] 36928.600015:   7 cpu_core/cycles/:"),
            expected("a:1.5 b", None, 9, Some(7), "cycles")
        );
        for line in [
            "",
            "\t  1469e main+0x7 (/bin/a)",
            "# captured on: 1",
            "a 7 12:",
            "a 7 12.5:",
            "a b 12.5: 7 x:",
            "main;work 12",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
