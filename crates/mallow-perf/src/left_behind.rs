//! Processes that a command has left behind: sampling ends with the command, as perf's does, and they run on.

use mallow_base::printable;
use mallow_launch::started::{is_alive, name_of};

/// How many are named.
const NAMED_MAX: usize = 3;

/// Returns those of these processes that run, by pid and name. One that has taken a number over has another name, as a rule.
pub(crate) fn that_run<'a>(processes: impl Iterator<Item = (u32, &'a str)>) -> Vec<(u32, &'a str)> {
    let mut running: Vec<(u32, &str)> =
        processes.filter(|(pid, name)| is_alive(*pid) && name_of(*pid) == *name).collect();
    running.sort_unstable();
    running
}

/// The sentence about them; none where nothing was left.
pub(crate) fn sentence(running: &[(u32, &str)]) -> Option<String> {
    let (first, _) = running.first()?;
    let named: Vec<String> =
        running.iter().take(NAMED_MAX).map(|(pid, name)| format!("{} {pid}", printable(name))).collect();
    let more = match running.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "when the command had ended, {}{more} still ran, and is not in the profile from then on; mallow cpu --pid {first} samples it",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_under_its_name_is_found() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let (pid, own) = (child.id(), std::process::id());
        while name_of(pid) != "sleep" {
            std::thread::yield_now();
        }
        let found = |name| that_run([(pid, name), (own, "another"), (u32::MAX >> 1, "gone")].into_iter());
        assert_eq!(found("sleep"), [(pid, "sleep")]);
        assert_eq!(found("shell"), []);
        child.kill().unwrap();
        // One that nobody has waited for has a number still.
        while is_alive(pid) {
            std::thread::yield_now();
        }
        assert_eq!(found("sleep"), []);
        child.wait().unwrap();
    }

    #[test]
    fn three_are_named_and_the_rest_is_counted() {
        assert_eq!(sentence(&[]), None);
        assert_eq!(
            sentence(&[(7, "nginx")]).unwrap(),
            "when the command had ended, nginx 7 still ran, and is not in the profile from then on; mallow cpu --pid 7 samples it"
        );
        let many: Vec<(u32, &str)> = (7..12).map(|pid| (pid, "nginx")).collect();
        assert!(sentence(&many).unwrap().contains("nginx 7, nginx 8, nginx 9 and 2 more still ran"));
    }
}
