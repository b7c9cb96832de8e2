//! How an environment is named, and how two of them differ.

use crate::measurement::Environment;

/// The version of the counting rules that metrics of this build follow.
pub const COUNTING: u32 = 1;

impl Environment {
    /// The class's name, safe as a file's: `x86_64-glibc2.36-python3.11-libc-2cpu-c1`.
    pub fn class_name(&self) -> String {
        format!(
            "{}-{}-{}-{}-{}cpu-c{}",
            safe(&self.architecture),
            safe(&self.libc),
            safe(&self.runtime),
            safe(&self.allocator),
            self.processors,
            self.counting
        )
    }

    /// Returns the differences to another environment, one clause each; empty if both are of one class. `self` is the
    /// baseline's.
    pub fn differences(&self, other: &Environment) -> Vec<String> {
        let texts = [
            ("architecture", &self.architecture, &other.architecture),
            ("libc", &self.libc, &other.libc),
            ("runtime", &self.runtime, &other.runtime),
            ("allocator", &self.allocator, &other.allocator),
        ];
        let mut sentences: Vec<String> = texts
            .into_iter()
            .filter(|(_, before, now)| before != now)
            .map(|(what, before, now)| format!("its {what} is {}, here it is {}", named(before), named(now)))
            .collect();
        if self.processors != other.processors {
            sentences.push(format!(
                "it is for {}, here are {}",
                processors(self.processors),
                other.processors
            ));
        }
        if self.counting != other.counting {
            let (before, now) = (self.counting, other.counting);
            sentences.push(format!("its counting rules are version {before}, here they are version {now}"));
        }
        sentences
    }
}

fn named(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

fn processors(count: u32) -> String {
    if count == 1 { "1 processor".to_owned() } else { format!("{count} processors") }
}

/// Only what file names and shells take without quoting; a dash separates the parts.
fn safe(text: &str) -> String {
    let kept: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+') { c } else { '_' })
        .collect();
    if kept.is_empty() { "unknown".to_owned() } else { kept }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
