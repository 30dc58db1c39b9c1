//! The random numbers of a drill: those of a generator, or, as far as it reaches, of a tape that a search has changed.

use serde::{Deserialize, Serialize};
use wingbeat_sim::rng::{self, Pcg64Mcg};

use super::Kind;

/// A stream of numbers from 0 to 1.
pub(super) struct Dice {
    rng: Pcg64Mcg,
    tape: Vec<f64>,
    drawn: Vec<f64>,
}

impl Dice {
    /// Begins the stream of a consumer; the numbers of the tape come first.
    pub(super) fn new(seed: u64, consumer: &str, tape: &[f64]) -> Self {
        Self { rng: rng::child(seed, consumer, 0), tape: tape.to_vec(), drawn: vec![] }
    }

    /// Draws the next number. The generator moves on with the tape, so that a number more on it changes no other.
    pub(super) fn uniform(&mut self) -> f64 {
        let own = rng::uniform(&mut self.rng);
        let value = self.tape.get(self.drawn.len()).copied().unwrap_or(own);
        self.drawn.push(value);
        value
    }
}

/// The numbers that decide a drill in the order in which they are drawn: what goes wrong, who flies what, and the wind. Where a
/// list ends the seed decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    /// Which faults, in which phase, of which aircraft.
    #[serde(default)]
    pub steps: Vec<f64>,
    /// Aircraft, mission and formation.
    #[serde(default)]
    pub scenario: Vec<f64>,
    /// The direction of the wind.
    #[serde(default)]
    pub wind: Vec<f64>,
}

impl Draws {
    /// Returns whether every number is one that can be drawn.
    pub(super) fn are_sound(&self) -> bool {
        let all = self.steps.iter().chain(&self.scenario).chain(&self.wind);
        all.into_iter().all(|value| (0.0..1.0).contains(value))
    }
}

/// The streams of one drill.
pub(super) struct Streams {
    pub(super) steps: Dice,
    pub(super) scenario: Dice,
    pub(super) wind: Dice,
}

impl Streams {
    /// Begins the streams of a kind whose scenarios are drawn by this consumer.
    pub(super) fn new(kind: Kind, seed: u64, scenario: &str, draws: &Draws) -> Self {
        Self {
            steps: Dice::new(seed, kind.name(), &draws.steps),
            scenario: Dice::new(seed, scenario, &draws.scenario),
            wind: Dice::new(seed, "drill wind", &draws.wind),
        }
    }

    /// Ends them: the numbers that were drawn.
    pub(super) fn drawn(self) -> Draws {
        Draws { steps: self.steps.drawn, scenario: self.scenario.drawn, wind: self.wind.drawn }
    }
}
