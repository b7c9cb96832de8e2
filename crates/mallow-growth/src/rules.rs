//! From where on growth is called growth.

/// Thresholds. The defaults are those of the guide.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Live bytes for each request below which nothing is called a leak: one 16-byte object on every fourth.
    pub heap_per_request_min: f64,
    /// The same for resident memory, which is noisier.
    pub resident_per_request_min: f64,
    /// Bytes an hour below which an idle program is at rest.
    pub idle_per_hour_min: f64,
    /// The share of requests that may fail.
    pub errors_max: f64,
    /// The share of its processors above which the generator is the limit.
    pub generator_busy_max: f64,
    /// The user's own limit on growth of the judged plane, in bytes per request.
    pub growth_per_request_max: Option<f64>,
    /// The user's own limit on what is retained after trimming, in bytes above the first observation.
    pub retained_bytes_max: Option<u64>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            heap_per_request_min: 4.0,
            resident_per_request_min: 64.0,
            idle_per_hour_min: 1_048_576.0,
            errors_max: 0.01,
            generator_busy_max: 0.95,
            growth_per_request_max: None,
            retained_bytes_max: None,
        }
    }
}
