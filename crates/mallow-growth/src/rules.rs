//! From where on growth is called growth.

/// Thresholds. The defaults are those of the guide.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Live bytes for each request below which nothing is called a leak: one 16-byte object on every fourth.
    pub heap_per_request_min: f64,
    /// The same for resident memory, which is noisier.
    pub resident_per_request_min: f64,
    /// The leak, in bytes per request, that a run has to be able to detect before it may pass; `None` for ten times
    /// the limit of the judged metric.
    pub sensitivity_per_request: Option<f64>,
    /// Bytes an hour below which an idle program is at rest.
    pub idle_per_hour_min: f64,
    /// The share of requests that may fail.
    pub errors_max: f64,
    /// The share of its processors above which the generator is the limit.
    pub generator_busy_max: f64,
    /// The user's own limit on growth of the judged metric, in bytes per request.
    pub growth_per_request_max: Option<f64>,
    /// The user's own limit on what is retained after trimming, in bytes above the first observation.
    pub retained_bytes_max: Option<u64>,
}

/// How many times the limit an undetected leak may be, if its size is not set.
const SENSITIVITY: f64 = 10.0;

impl Rules {
    /// The leak that has to be seen on a metric with this limit.
    pub(crate) fn sensitivity(&self, per_request_min: f64) -> f64 {
        self.sensitivity_per_request.unwrap_or(SENSITIVITY * per_request_min)
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            heap_per_request_min: 4.0,
            resident_per_request_min: 64.0,
            sensitivity_per_request: None,
            idle_per_hour_min: 1_048_576.0,
            errors_max: 0.01,
            generator_busy_max: 0.95,
            growth_per_request_max: None,
            retained_bytes_max: None,
        }
    }
}
