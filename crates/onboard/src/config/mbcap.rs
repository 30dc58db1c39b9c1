//! The section `mbcap`: a mission of the aircraft's own, kept apart from other aircraft.

use serde::Deserialize;
use wingbeat_protocol::mbcap::Config;
use wingbeat_protocol::mbcap::config::{BrakeFit, Deadlock, Horizon, SafeDistance};
use wingbeat_wire::VehicleId;

use super::ConfigError;
use super::values::{Choice, Milliseconds, choose, set, value};

/// The keys; their meaning, unit, default and source stand in `deploy/wingbeatd.toml`.
#[allow(missing_docs)]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mbcap {
    pub variant: Option<Choice<Variant>>,
    pub planned_speed_m_s: Option<f64>,
    pub beacon_period_ms: Option<Milliseconds>,
    pub beacons_per_prediction: Option<u32>,
    pub beacon_validity_ms: Option<Milliseconds>,
    pub prediction_hop_s: Option<f64>,
    pub horizon_s: Option<f64>,
    pub reaction_distance_m: Option<f64>,
    pub acceleration_newest_percent: Option<f64>,
    pub acceleration_dead_band_m_s2: Option<f64>,
    pub moving_m_s: Option<f64>,
    pub brake: Option<Choice<BrakeFit>>,
    pub gps_error_m: Option<f64>,
    pub reaction_s: Option<f64>,
    pub loss_s: Option<f64>,
    pub braking_m_s2: Option<f64>,
    pub risk_distance_m: Option<f64>,
    pub risk_height_m: Option<f64>,
    pub risk_time_s: Option<f64>,
    pub check_period_ms: Option<Milliseconds>,
    pub stand_still_ms: Option<Milliseconds>,
    pub overtaking_ms: Option<Milliseconds>,
    pub resume_ms: Option<Milliseconds>,
    pub recheck_ms: Option<Milliseconds>,
    pub deadlock_ms: Option<Milliseconds>,
    pub third_party_wait_ms: Option<Milliseconds>,
    pub safe_distance_m: Option<f64>,
    pub curve_error_m: Option<f64>,
    pub aside_error_m: Option<f64>,
    pub stopped_m_s: Option<f64>,
    pub stop_ms: Option<Milliseconds>,
    pub calm_ms: Option<Milliseconds>,
    pub hold_before_landing_ms: Option<Milliseconds>,
}

/// The published numbers that the other keys overwrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Thesis section 5.1.
    Mbcap,
    /// Thesis section 5.3.
    #[default]
    MbcapE,
}

impl Mbcap {
    pub(super) fn config(&self, me: VehicleId) -> Result<Config, ConfigError> {
        let mut config = match self.variant.map(|choice| choice.0).unwrap_or_default() {
            Variant::MbcapE => Config::mbcap_e(),
            Variant::Mbcap => Config::mbcap(),
        };
        if let Some(key) = self.key_of_other_variant(&config) {
            return Err(value(key, &"a value", format!("none with mbcap.variant = \"{}\"", config.name)));
        }
        config.me = me;
        self.apply(&mut config);
        Ok(config)
    }

    /// A key that is configured and means nothing to the variant of `config`.
    pub fn key_of_other_variant(&self, config: &Config) -> Option<&'static str> {
        let of_mbcap = [
            ("mbcap.horizon_s", self.horizon_s.is_some()),
            ("mbcap.reaction_distance_m", self.reaction_distance_m.is_some()),
        ];
        let of_mbcap_e = [
            ("mbcap.brake", self.brake.is_some()),
            ("mbcap.gps_error_m", self.gps_error_m.is_some()),
            ("mbcap.reaction_s", self.reaction_s.is_some()),
            ("mbcap.loss_s", self.loss_s.is_some()),
            ("mbcap.braking_m_s2", self.braking_m_s2.is_some()),
            ("mbcap.curve_error_m", self.curve_error_m.is_some()),
            ("mbcap.aside_error_m", self.aside_error_m.is_some()),
        ];
        let others: &[(&str, bool)] = match config.prediction.horizon {
            Horizon::Fixed { .. } => &of_mbcap_e,
            Horizon::BySpeed { .. } => &of_mbcap,
        };
        others.iter().find(|(_, is_configured)| *is_configured).map(|(key, _)| *key)
    }

    /// Overwrites what is configured.
    pub fn apply(&self, config: &mut Config) {
        set(&mut config.planned_speed_m_s, self.planned_speed_m_s);
        set(&mut config.beacon_period, self.beacon_period_ms);
        set(&mut config.beacons_per_prediction, self.beacons_per_prediction);
        set(&mut config.beacon_validity, self.beacon_validity_ms);
        set(&mut config.prediction.hop_s, self.prediction_hop_s);
        set(&mut config.prediction.filter.newest_percent, self.acceleration_newest_percent);
        set(&mut config.prediction.filter.dead_band_m_s2, self.acceleration_dead_band_m_s2);
        set(&mut config.prediction.moving_m_s, self.moving_m_s);
        match &mut config.prediction.horizon {
            Horizon::Fixed { time_s, distance_m } => {
                set(time_s, self.horizon_s);
                set(distance_m, self.reaction_distance_m);
            }
            Horizon::BySpeed { brake, gps_error_m, reaction_s, loss_s } => {
                choose(brake, self.brake);
                set(gps_error_m, self.gps_error_m);
                set(reaction_s, self.reaction_s);
                set(loss_s, self.loss_s);
                config.prediction.braking_m_s2 = self.braking_m_s2.or(config.prediction.braking_m_s2);
            }
        }
        if let SafeDistance::ByErrors { curve_m, aside_m } = &mut config.safe_distance {
            set(curve_m, self.curve_error_m);
            set(aside_m, self.aside_error_m);
        }
        if let Some(distance_m) = self.safe_distance_m {
            config.safe_distance = SafeDistance::Fixed(distance_m);
        }
        set(&mut config.risk.distance_m, self.risk_distance_m);
        set(&mut config.risk.height_m, self.risk_height_m);
        set(&mut config.risk.time_s, self.risk_time_s);
        set(&mut config.check_period, self.check_period_ms);
        set(&mut config.standing, self.stand_still_ms);
        set(&mut config.overtaking, self.overtaking_ms);
        set(&mut config.resume, self.resume_ms);
        set(&mut config.recheck, self.recheck_ms);
        if let Some(time) = self.deadlock_ms {
            config.deadlock = Deadlock::Fixed(time.into());
        }
        set(&mut config.turn, self.third_party_wait_ms);
        set(&mut config.stopped_m_s, self.stopped_m_s);
        set(&mut config.stop, self.stop_ms);
        set(&mut config.calm, self.calm_ms);
        set(&mut config.hold_before_landing, self.hold_before_landing_ms);
    }
}
