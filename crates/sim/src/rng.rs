//! Random numbers: one seed, one child generator per consumer.
//!
//! A draw more in one place changes nothing in another, so two protocols can be compared on the same
//! placement, the same wind and the same radio losses (design rule 9).

use rand_core::Rng;
pub use rand_pcg::Pcg64Mcg;

/// The generator of one consumer: `consumer` names it ("wind", "radio", …), `index` distinguishes its
/// siblings (aircraft number, link number).
pub fn child(seed: u64, consumer: &str, index: u64) -> Pcg64Mcg {
    Children::of(seed, consumer).child(index)
}

/// The generators of one kind of consumer, for a consumer with many: its name is hashed once.
#[derive(Clone, Copy, Debug)]
pub struct Children(u128);

impl Children {
    /// Those of the consumers with this name.
    pub fn of(seed: u64, consumer: &str) -> Self {
        // FNV-1a over everything that identifies the consumer; PCG scrambles the rest.
        let bytes = seed.to_le_bytes().into_iter().chain(consumer.bytes()).chain([0]);
        Self(bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, hashed))
    }
    /// The generator of one of them.
    pub fn child(self, index: u64) -> Pcg64Mcg {
        let mut generator = Pcg64Mcg::new(index.to_le_bytes().into_iter().fold(self.0, hashed));
        generator.next_u64();
        generator
    }
}

fn hashed(hash: u128, byte: u8) -> u128 {
    (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
}

/// Uniform in 0..1, from the 53 high bits of one draw.
pub fn uniform(generator: &mut Pcg64Mcg) -> f64 {
    (generator.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Normal with mean 0 and deviation 1: Irwin and Hall's sum of twelve uniforms, which needs no
/// logarithm and is bounded by ±6, as a sensor's error is.
pub fn normal(generator: &mut Pcg64Mcg) -> f64 {
    (0..12).map(|_| uniform(generator)).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_apart_and_repeat() {
        let draw = |seed, name, index| child(seed, name, index).next_u64();
        assert_eq!(draw(1, "wind", 0), draw(1, "wind", 0));
        let others = [draw(2, "wind", 0), draw(1, "radio", 0), draw(1, "wind", 1)];
        assert!(others.iter().all(|&d| d != draw(1, "wind", 0)));
    }

    #[test]
    fn normal_has_mean_zero_and_deviation_one() {
        let mut g = child(7, "normal", 0);
        let n = 20_000;
        let draws: Vec<f64> = (0..n).map(|_| normal(&mut g)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
