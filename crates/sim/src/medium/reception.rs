//! Whether a frame at 6 Mbit/s survives noise and interference: BPSK with the convolutional code of rate 1/2 and
//! constraint length 7 (IEEE 802.11-2020, 17.3.5.6), soft decisions, white noise.
//!
//! The probability that the decoder takes a wrong path from a bit on is at most Σ a_d Q(√(2 d γ)) with γ the ratio of
//! signal to noise and interference in the channel (Proakis, Digital Communications, 8.2); a_d are the first terms of
//! the code's distance spectrum, 11, 38, 193, 1331, 7275 for d = 10, 12, 14, 16, 18 (Frenger, Orten and
//! Ottosson, Convolutional codes with optimum distance spectrum, 1999).

use super::timing::Nanos;

/// A preamble is found from this ratio on, as with the threshold model of ns-3 (4 dB). The standard demands 90 % of
/// preambles found at -82 dBm (17.3.10.6), which is 12 dB above a receiver's noise, and says nothing about interference.
pub(super) const PREAMBLE_RATIO: f64 = 2.511_886_431_509_58;

/// Bits on the air in a microsecond at 6 Mbit/s.
const BITS_PER_US: f64 = 6.0;
/// From here on errors are rarer than one frame in ten million.
const CLEAN_RATIO: f64 = 2.6;
const STEPS: usize = 520;
const STEPS_PER_RATIO: f64 = STEPS as f64 / CLEAN_RATIO;

/// Errors per bit by ratio, in steps.
pub(super) struct ErrorRates(Vec<f64>);

impl ErrorRates {
    pub(super) fn new() -> Self {
        Self((0..=STEPS).map(|step| errors_per_bit(step as f64 / STEPS_PER_RATIO)).collect())
    }

    /// What a stretch of a frame adds to the negative logarithm of its success.
    pub(super) fn exponent(&self, ratio: f64, from: Nanos, to: Nanos) -> f64 {
        if ratio >= CLEAN_RATIO {
            return 0.0;
        }
        let bits = to.since(from) as f64 * 1e-3 * BITS_PER_US;
        let per_bit = self.0[((ratio * STEPS_PER_RATIO) as usize).min(STEPS)];
        // -ln(1 - p); a bit that is surely wrong ends every frame.
        bits * if per_bit < 1.0 { -libm::log1p(-per_bit) } else { 1e3 }
    }
}

fn errors_per_bit(ratio: f64) -> f64 {
    let spectrum = [(10.0, 11.0), (12.0, 38.0), (14.0, 193.0), (16.0, 1331.0), (18.0, 7275.0)];
    // Q(√(2 d γ)) = erfc(√(d γ)) / 2.
    let wrong: f64 = spectrum.iter().map(|(d, paths)| paths * 0.5 * libm::erfc((d * ratio).sqrt())).sum();
    wrong.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(ratio_db: f64, bytes: u64) -> f64 {
        let ratio = libm::pow(10.0, ratio_db / 10.0);
        1.0 - libm::exp(-ErrorRates::new().exponent(ratio, Nanos::ZERO, Nanos(bytes * 8 * 1000 / 6)))
    }

    #[test]
    fn a_frame_survives_from_about_one_decibel_on() {
        assert!(lost(-3.0, 1000) > 0.999, "{}", lost(-3.0, 1000));
        assert!((0.01..0.5).contains(&lost(0.5, 1000)), "{}", lost(0.5, 1000));
        assert!(lost(2.0, 1000) < 1e-3 && lost(4.2, 1000) < 1e-7, "{}", lost(2.0, 1000));
        // Twice the bits, twice the exponent.
        let (one, two) = (lost(1.0, 500), lost(1.0, 1000));
        assert!(((1.0 - one) * (1.0 - one) - (1.0 - two)).abs() < 1e-5, "{one} {two}");
    }

    #[test]
    fn errors_grow_as_the_signal_sinks() {
        let rates: Vec<f64> = (0..40).map(|k| errors_per_bit(f64::from(k) * 0.1)).collect();
        assert!(rates.windows(2).all(|w| w[0] >= w[1]) && rates[0] == 1.0);
    }
}
