//! The section `separation`: the limits of the separation monitor.

use serde::Deserialize;
use wingbeat_agent::separation::Thresholds;

use super::values::{Milliseconds, set};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Separation {
    alarm_distance_m: Option<f64>,
    alarm_time_s: Option<f64>,
    collision_distance_m: Option<f64>,
    rule_period_ms: Option<Milliseconds>,
    rule_horizontal_m: Option<f64>,
    rule_vertical_m: Option<f64>,
}

impl Separation {
    pub(super) fn apply(&self, thresholds: &mut Thresholds) {
        set(&mut thresholds.alarm_distance_m, self.alarm_distance_m);
        set(&mut thresholds.alarm_time_s, self.alarm_time_s);
        set(&mut thresholds.collision_distance_m, self.collision_distance_m);
        set(&mut thresholds.rule_period, self.rule_period_ms);
        set(&mut thresholds.rule_horizontal_m, self.rule_horizontal_m);
        set(&mut thresholds.rule_vertical_m, self.rule_vertical_m);
    }
}
