//! An emergency by radio: how long from the operator's key to each aircraft's act, where datagrams are lost.
//!
//! The crowd of [`crate::sky`] flies; then the console orders *Land* by radio, and the time is taken until each flight
//! controller is in that mode. Every link, the console's included, loses the same share; what aircraft pass on of the order
//! competes with their own datagrams. `wingbeat bench emergency` prints it.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use wingbeat_agent::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::medium::Medium;
use wingbeat_sim::medium::csma::{Config, Csma};
use wingbeat_sim::medium::link::Propagation;
use wingbeat_sim::rng;

use crate::sky;

/// Flown before the key is pressed.
const FLOWN: Duration = Duration::from_secs(10);
/// The key is pressed within the second after that.
const PRESSED_WITHIN_MS: f64 = 1_000.0;
/// How often the flight controllers are sampled.
const SAMPLE: Duration = Duration::from_millis(5);
/// By then an aircraft has acted, or the bench fails.
const LIMIT: Duration = Duration::from_secs(30);
const KEY: &str = "emergency";
/// Power at every antenna on the medium of frames: 40 dB above its noise.
const POWER_DBM: f64 = -54.0;

/// What carries the datagrams. Every radio reaches every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Air {
    /// Nothing waits, and no two datagrams collide.
    Unrestricted,
    /// 802.11 frames: they wait for each other, and those that overlap are lost.
    Csma,
}

impl Air {
    fn medium(self, seed: u64, radios: usize) -> Box<dyn Medium> {
        match self {
            Self::Unrestricted => Channel::new(Model::Unrestricted, Draw::PerPacket, seed, radios).into(),
            Self::Csma => {
                let propagation = Propagation::Equal { power_dbm: POWER_DBM };
                Csma::new(Config { propagation, ..Config::default() }, seed, radios).into()
            }
        }
    }
}

impl fmt::Display for Air {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unrestricted => "unrestricted",
            Self::Csma => "csma",
        })
    }
}

impl FromStr for Air {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = [Self::Unrestricted, Self::Csma].into_iter().find(|air| air.to_string() == name);
        known.ok_or_else(|| format!("found '{name}', expected unrestricted or csma"))
    }
}

/// From the key to the acts of all aircraft in all flights, shortest first.
pub struct Delays(Vec<Duration>);

impl Delays {
    /// The shortest time within which this share of the aircraft has acted.
    pub fn within(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let index = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(index.saturating_sub(1).min(last)).copied().unwrap_or_default()
    }
}

/// Flies `seeds` flights of `aircraft`, with this share of datagrams lost from the key on.
///
/// # Errors
/// A flight that cannot be begun, or an aircraft that has not acted after 30 s.
pub fn delays(air: Air, aircraft: usize, loss: f64, seeds: u64) -> Result<Delays> {
    ensure!((0.0..1.0).contains(&loss), "loss: found {loss}, expected 0 to less than 1");
    let mut delays = Vec::new();
    for seed in 1..=seeds {
        // The console's radio is one more.
        let medium = air.medium(seed, aircraft + 1);
        let mut world = sky::world(aircraft, seed, medium)?.with_console(DVec3::ZERO);
        sky::start(&mut world)?;
        let after_ms = PRESSED_WITHIN_MS * rng::uniform(&mut rng::child(seed, "emergency", 0));
        world.run_until(world.now() + FLOWN + Duration::from_millis(after_ms as u64));
        world.inflict(world.now(), Fault::Loss { share: loss, until: Instant::NEVER });
        let all: Vec<usize> = (0..aircraft).collect();
        let pressed = world.now();
        world.press(KEY, Command::Land, &all);
        let mut waiting = all;
        while !waiting.is_empty() {
            world.run_until(world.now() + SAMPLE);
            let after = world.now().since(pressed);
            waiting.retain(|&i| {
                world.truth(i).mode != Mode::Land || {
                    delays.push(after);
                    false
                }
            });
            if after > LIMIT {
                bail!(
                    "seed {seed}: found {} aircraft that did not act within 30 s, expected none",
                    waiting.len()
                );
            }
        }
    }
    delays.sort_unstable();
    Ok(Delays(delays))
}

/// Prints the figures.
///
/// # Errors
/// As [`delays`].
pub fn run(air: Air, aircraft: usize, loss: f64, seeds: u64) -> Result<()> {
    let delays = delays(air, aircraft, loss, seeds)?;
    let ms = |share| delays.within(share).as_millis();
    println!(
        "emergency: {aircraft} aircraft, channel {air}, {:.0} % of datagrams lost, {seeds} flights: from the key to LAND p50 {} ms, p99 {} ms, most {} ms",
        100.0 * loss,
        ms(0.5),
        ms(0.99),
        ms(1.0),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_datagrams_lost_every_aircraft_lands_within_a_second() {
        for air in [Air::Unrestricted, Air::Csma] {
            let delays = delays(air, 12, 0.5, 8).unwrap();
            assert_eq!(delays.0.len(), 12 * 8);
            assert!(delays.within(0.99) <= Duration::from_secs(1), "{air}: {:?}", delays.within(0.99));
        }
    }

    #[test]
    fn the_channel_is_one_of_two() {
        assert_eq!("csma".parse(), Ok(Air::Csma));
        let refused = "wifi".parse::<Air>().unwrap_err();
        assert_eq!(refused, "found 'wifi', expected unrestricted or csma");
    }
}
