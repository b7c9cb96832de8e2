//! Estimates metrics of all allocations from those of samples.

use super::Metrics;

/// How a profiler chose the allocations that it recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// It recorded every one.
    None,
    /// One allocation per period of allocated bytes, on average: an allocation of X bytes was sampled with the probability 1 - exp(-X / period).
    Poisson {
        /// In bytes.
        period: u64,
    },
}

impl Sampling {
    /// Converts the period in a file: 0 and 1 mean no sampling. With a period of 1 even a block of 16 bytes is almost always sampled.
    pub(crate) fn of_period(period: u64) -> Sampling {
        if period <= 1 { Sampling::None } else { Sampling::Poisson { period } }
    }

    /// Returns the estimate of one line of a file. Each line has its own mean size and is scaled by it: sums of samples cannot be scaled.
    pub(crate) fn estimate(self, raw: &Metrics) -> Metrics {
        let Sampling::Poisson { period } = self else { return *raw };
        let (live_blocks, live_bytes) = scaled(raw.live_blocks, raw.live_bytes, period);
        let (allocations, bytes) = scaled(raw.allocations, raw.bytes, period);
        Metrics { live_blocks, live_bytes, allocations, bytes }
    }

    /// Returns warnings about such metrics.
    pub(crate) fn warnings(self, tool: &str) -> Vec<String> {
        match self {
            Sampling::None => Vec::new(),
            Sampling::Poisson { period } => vec![format!(
                "metrics are estimates: {tool} sampled one allocation in about every {period} bytes"
            )],
        }
    }
}

/// The formula of jeprof (`AdjustSamples`, algorithm 2) and of pprof (`scaleHeapSample`).
fn scaled(blocks: u64, bytes: u64, period: u64) -> (u64, u64) {
    if blocks == 0 || bytes == 0 {
        return (blocks, bytes);
    }
    let (count, sum) = (blocks as f64, bytes as f64);
    let seen = -(-(sum / count) / period as f64).exp_m1();
    // A conversion to an integer saturates.
    ((count / seen).round() as u64, (sum / seen).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_scaled_by_its_mean_size() {
        // 407 blocks of 898 bytes on average: 1 / (1 - exp(-897.86 / 16384)) = 18.7523.
        assert_eq!(scaled(407, 365_430, 16384), (7632, 6_852_672));
        // Blocks far larger than the period were all sampled.
        assert_eq!(scaled(1, 81_939, 16384), (1, 82_494));
        assert_eq!(scaled(3, 30 << 20, 16384), (3, 30 << 20));
    }

    #[test]
    fn metrics_that_make_no_sense_stay_finite() {
        assert_eq!(scaled(0, 100, 16384), (0, 100));
        assert_eq!(scaled(5, 0, 16384), (5, 0));
        assert_eq!(scaled(u64::MAX, 1, u64::MAX), (u64::MAX, u64::MAX));
    }

    #[test]
    fn without_sampling_metrics_are_exact() {
        let raw = Metrics { live_blocks: 3, live_bytes: 3, allocations: 9, bytes: 9 };
        assert_eq!(Sampling::of_period(1).estimate(&raw), raw);
        assert_eq!(Sampling::of_period(0).warnings("jemalloc"), Vec::<String>::new());
        assert_ne!(Sampling::of_period(2).estimate(&raw), raw);
    }
}
