//! Chance with a fixed seed, and the noise of a heap: what is held at one look is like what was held at the last one.

/// Steele, Lea and Flood's SplitMix64.
#[derive(Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The sequence of this seed.
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Above 0, at most 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Mean 0, standard deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Noise whose neighbours correlate by 0.7.
#[derive(Clone)]
pub(crate) struct Autoregressive {
    sigma: f64,
    value: f64,
    is_still: bool,
}

impl Autoregressive {
    const PHI: f64 = 0.7;

    /// With this standard deviation.
    pub(crate) fn new(sigma: f64, chance: &mut Chance) -> Autoregressive {
        Autoregressive { sigma, value: sigma * chance.normal(), is_still: false }
    }

    /// From here on it stays what it is.
    pub(crate) fn stand_still(&mut self) {
        self.is_still = true;
    }

    /// The next one.
    pub(crate) fn next(&mut self, chance: &mut Chance) -> f64 {
        if self.is_still {
            return self.value;
        }
        let fresh = (1.0 - Self::PHI * Self::PHI).sqrt() * self.sigma * chance.normal();
        self.value = Self::PHI * self.value + fresh;
        self.value
    }
}
