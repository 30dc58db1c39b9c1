//! Inputs from a seed: members of a corpus, changed.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

/// No input is longer.
const LEN_MAX: usize = 4_096;

/// Of numbers, and the bytes that frames begin with.
const LIMITS: &[u8] = &[0, 0x7f, 0x80, 0xff, 0xfd, 0xfe];
/// That mean something in text.
const CHARACTERS: &[u8] = b"0123456789-+.eE,:\"'[]{}<>/\n\t ";

/// Makes one input after the other.
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    generator: Pcg64Mcg,
}

impl Mutator {
    /// From a corpus, which may be empty, and a seed.
    pub fn new(corpus: Vec<Vec<u8>>, seed: u64) -> Self {
        let mut generator = Pcg64Mcg::new(u128::from(seed) << 32 | 0xf0ff);
        generator.next_u64();
        Self { corpus, generator }
    }

    fn below(&mut self, bound: usize) -> usize {
        ((self.generator.next_u64() >> 11) % bound.max(1) as u64) as usize
    }

    /// A byte as it occurs: small numbers, such as enums and lengths are; limits; characters; anything.
    fn byte(&mut self) -> u8 {
        match self.below(8) {
            0..=2 => self.below(16) as u8,
            3 => LIMITS[self.below(LIMITS.len())],
            4 => CHARACTERS[self.below(CHARACTERS.len())],
            _ => self.below(256) as u8,
        }
    }

    /// One of the corpus, or nothing.
    fn member(&mut self) -> Vec<u8> {
        let index = self.below(self.corpus.len());
        self.corpus.get(index).cloned().unwrap_or_default()
    }

    /// Writes the next input.
    pub fn next_into(&mut self, input: &mut Vec<u8>) {
        *input = self.member();
        if self.below(16) == 0 {
            *input = (0..self.below(500)).map(|_| self.byte()).collect();
        }
        for _ in 0..1 + self.below(6) {
            self.change(input);
        }
        input.truncate(LEN_MAX);
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(16)).min(input.len());
        match self.below(8) {
            0 | 1 => {
                let byte = self.byte();
                if let Some(changed) = input.get_mut(at) {
                    *changed = byte;
                }
            }
            2 => {
                let bit = 1 << self.below(8);
                if let Some(changed) = input.get_mut(at) {
                    *changed ^= bit;
                }
            }
            3 => {
                let bytes: Vec<u8> = (0..1 + self.below(8)).map(|_| self.byte()).collect();
                input.splice(at..at, bytes);
            }
            4 => drop(input.drain(at.min(end)..end)),
            // Again what stood there.
            5 => {
                let piece = input[at.min(end)..end].to_vec();
                input.splice(at..at, piece);
            }
            6 => input.truncate(at),
            // The rest of another.
            _ => {
                let other = self.member();
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_another_seed_others() {
        let corpus = vec![b"beacon".to_vec(), b"plan".to_vec()];
        let inputs = |seed, corpus: &Vec<Vec<u8>>| -> Vec<Vec<u8>> {
            let mut mutator = Mutator::new(corpus.clone(), seed);
            let next = |_| {
                let mut input = Vec::new();
                mutator.next_into(&mut input);
                input
            };
            (0..1_000).map(next).collect()
        };
        assert_eq!(inputs(1, &corpus), inputs(1, &corpus));
        assert_ne!(inputs(1, &corpus), inputs(2, &corpus));
        let made = inputs(3, &vec![]);
        assert!(
            made.iter().all(|input| input.len() <= LEN_MAX) && made.iter().any(|input| !input.is_empty())
        );
    }
}
