//! Fence and rally points as 3.5.7 exchanges them: one message a point, their number in `FENCE_TOTAL` and `RALLY_TOTAL`, which the
//! ground station sets first. 4.x has them as missions (`mission.rs`). They are kept and given back, not flown by.

use wingbeat_autopilot::dialect::{FENCE_POINT_DATA, MavMessage, MavSeverity, RALLY_POINT_DATA};

use super::link::Sender;
use super::{FlightController, Parameter};
use crate::motion::Profile;

/// The points that were sent.
#[derive(Debug, Default)]
pub(super) struct Points {
    fence: Vec<FENCE_POINT_DATA>,
    rally: Vec<RALLY_POINT_DATA>,
}

impl FlightController {
    fn total(&self, parameter: Parameter) -> u8 {
        self.parameters.get(parameter).clamp(0.0, 127.0) as u8
    }

    pub(super) fn handle_fence_fetch(&mut self, idx: u8, to: Sender) {
        if self.profile() == Profile::Copter462 {
            return;
        }
        let stored = self.points.fence.iter().find(|point| point.idx == idx).cloned().unwrap_or_default();
        let count = self.total(Parameter::FENCE_TOTAL);
        // One that was not sent is a zero (measured).
        self.send(&MavMessage::FENCE_POINT(FENCE_POINT_DATA {
            target_system: to.system,
            target_component: to.component,
            idx,
            count,
            ..stored
        }));
    }

    pub(super) fn handle_fence_point(&mut self, m: &FENCE_POINT_DATA) {
        if self.profile() == Profile::Copter357 && m.idx < self.total(Parameter::FENCE_TOTAL) {
            self.points.fence.retain(|point| point.idx != m.idx);
            self.points.fence.push(m.clone());
        }
    }

    pub(super) fn handle_rally_fetch(&mut self, idx: u8, to: Sender) {
        if self.profile() == Profile::Copter462 {
            return;
        }
        let count = self.total(Parameter::RALLY_TOTAL);
        match self.points.rally.iter().find(|point| point.idx == idx && idx < count).cloned() {
            Some(stored) => self.send(&MavMessage::RALLY_POINT(RALLY_POINT_DATA {
                target_system: to.system,
                target_component: to.component,
                count,
                ..stored
            })),
            // Its words, though nothing was to be set (measured).
            None => {
                let notice = MavSeverity::MAV_SEVERITY_NOTICE;
                self.send_text(notice, format_args!("Failed to set rally point"));
            }
        }
    }

    pub(super) fn handle_rally_point(&mut self, m: &RALLY_POINT_DATA) {
        if self.profile() == Profile::Copter357 && m.idx < self.total(Parameter::RALLY_TOTAL) {
            self.points.rally.retain(|point| point.idx != m.idx);
            self.points.rally.push(m.clone());
        }
    }
}
