//! The section `energy`: what is kept of the battery. The guardian reads the voltage to land at, and the batteries that count.

use serde::Deserialize;
use wingbeat_agent::energy::Reserve;
use wingbeat_agent::guardian;

use super::ConfigError;
use super::values::{Seconds, set, value};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Energy {
    reserve_percent: Option<u8>,
    return_below_v: Option<f64>,
    land_below_v: Option<f64>,
    below_for_s: Option<u8>,
    endurance_s: Option<Seconds>,
    wait_s: Option<Seconds>,
    cruise_m_s: Option<f64>,
    wind_m_s: Option<f64>,
    airspeed_m_s: Option<f64>,
    other_batteries: Option<Vec<u8>>,
}

/// What the guardian reads of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct LandBelow {
    land_below_v: Option<f64>,
    below_for_s: Option<u8>,
    other_batteries: Option<Vec<u8>>,
}

/// As the agent judges it: whole millivolts, as the flight controller reports them.
fn millivolts(key: &'static str, configured_v: Option<f64>) -> Result<u16, ConfigError> {
    let Some(found) = configured_v else { return Ok(0) };
    if !(3.0..=60.0).contains(&found) {
        return Err(value(key, &found, "3 to 60 V"));
    }
    Ok((found * 1e3).round() as u16)
}

/// Batteries by their numbers, from 1, as a bit for each.
fn batteries(numbers: &[u8]) -> Result<u16, ConfigError> {
    numbers.iter().try_fold(0, |all, number| match number {
        1..=16 => Ok(all | 1 << (number - 1)),
        _ => Err(value("energy.other_batteries", number, "numbers of batteries, 1 to 16")),
    })
}

impl Energy {
    pub(super) fn apply(&self, agent: &mut wingbeat_agent::Config) -> Result<(), ConfigError> {
        let mut reserve = Reserve {
            return_below_mv: millivolts("energy.return_below_v", self.return_below_v)?,
            land_below_mv: millivolts("energy.land_below_v", self.land_below_v)?,
            ..Reserve::default()
        };
        set(&mut reserve.reserve_percent, self.reserve_percent);
        set(&mut reserve.below_for_s, self.below_for_s);
        set(&mut reserve.wait, self.wait_s);
        set(&mut reserve.cruise_m_s, self.cruise_m_s);
        (reserve.wind_m_s, reserve.airspeed_m_s) = (self.wind_m_s, self.airspeed_m_s);
        reserve.other_batteries = batteries(self.other_batteries.as_deref().unwrap_or_default())?;
        reserve.endurance = self.endurance_s.map(Into::into);
        agent.energy = Some(reserve);
        Ok(())
    }

    pub(super) fn land_below(&self) -> LandBelow {
        LandBelow {
            land_below_v: self.land_below_v,
            below_for_s: self.below_for_s,
            other_batteries: self.other_batteries.clone(),
        }
    }
}

impl LandBelow {
    pub(super) fn apply(self, guardian: &mut guardian::Config) -> Result<(), ConfigError> {
        guardian.land_below_mv = millivolts("energy.land_below_v", self.land_below_v)?;
        set(&mut guardian.below_for_s, self.below_for_s);
        guardian.other_batteries = batteries(self.other_batteries.as_deref().unwrap_or_default())?;
        Ok(())
    }
}
