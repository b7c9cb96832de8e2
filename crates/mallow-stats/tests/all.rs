//! What the ratio's interval and the verdicts are worth: a naive twin, and comparisons of equal commands over recorded series.

mod false_alarms;
mod twin;
