//! Remote ID as ArduCopter's `AP_OpenDroneID` answers (since 4.2): what a ground station states is kept, and with bit 0 of
//! `DID_OPTIONS` it does not arm without it. The transmitter on `DID_MAVPORT` is simulated: it reports each second whether
//! it has what it must broadcast, as ArduRemoteID does.

use wingbeat_autopilot::dialect::{
    MavMessage, MavOdidArmStatus, MavOdidIdType, OPEN_DRONE_ID_ARM_STATUS_DATA, OPEN_DRONE_ID_BASIC_ID_DATA,
};
use wingbeat_geo::{Duration, Instant};

use super::{FlightController, Parameter};
use crate::motion::Profile;

/// What is older counts as absent (`pre_arm_check`).
const AGE_MAX: Duration = Duration::from_secs(3);
/// The transmitter's component.
const TRANSMITTER: u8 = 236;
/// `DID_OPTIONS`, bit 0.
const ENFORCE_ARMING: u32 = 1;

#[derive(Debug, Default)]
pub(super) struct RemoteId {
    id: [u8; 20],
    has_id: bool,
    operator: (i32, i32),
    system_at: Option<Instant>,
    transmitter: Transmitter,
}

/// The simulated transmitter.
#[derive(Debug, Default)]
struct Transmitter {
    is_off: bool,
    reported_at: Option<Instant>,
    fault: Option<&'static str>,
}

impl FlightController {
    fn has_remote_id(&self) -> bool {
        self.profile() == Profile::Copter462 && self.parameters.flag(Parameter::DID_ENABLE) == 1
    }

    /// The transmitter is off, or on again.
    pub fn switch_remote_id_transmitter(&mut self, is_on: bool) {
        self.remote_id.transmitter.is_off = !is_on;
    }

    /// The aircraft's id and the operator's latitude and longitude, 1e-7 degree, that it broadcasts.
    pub fn remote_id(&self) -> Option<(&[u8; 20], (i32, i32))> {
        self.remote_id.has_id.then_some((&self.remote_id.id, self.remote_id.operator))
    }

    /// Takes a message of Remote ID; false where it is none.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn handle_remote_id(&mut self, message: &MavMessage) -> bool {
        if !self.has_remote_id() {
            return false;
        }
        let (now, state) = (self.now, &mut self.remote_id);
        match message {
            MavMessage::OPEN_DRONE_ID_BASIC_ID(OPEN_DRONE_ID_BASIC_ID_DATA { id_type, uas_id, .. }) => {
                (state.id, state.has_id) = (*uas_id, *id_type != MavOdidIdType::MAV_ODID_ID_TYPE_NONE);
            }
            MavMessage::OPEN_DRONE_ID_SYSTEM(m) => {
                (state.operator, state.system_at) = ((m.operator_latitude, m.operator_longitude), Some(now));
            }
            MavMessage::OPEN_DRONE_ID_SYSTEM_UPDATE(m) => {
                state.operator = (m.operator_latitude, m.operator_longitude);
                state.system_at = state.system_at.map(|_| now);
            }
            MavMessage::OPEN_DRONE_ID_OPERATOR_ID(_) | MavMessage::OPEN_DRONE_ID_SELF_ID(_) => {}
            _ => return false,
        }
        true
    }

    /// The transmitter's report, passed on by the autopilot.
    pub(super) fn send_arm_status(&mut self) {
        let period_ticks = 50;
        if !self.has_remote_id()
            || self.parameters.get(Parameter::DID_MAVPORT) < 0.0
            || self.remote_id.transmitter.is_off
            || !self.ticks.is_multiple_of(period_ticks)
        {
            return;
        }
        let fault = match &self.remote_id {
            RemoteId { has_id: false, .. } => Some("missing basic_id message"),
            RemoteId { system_at: None, .. } => Some("missing system message"),
            RemoteId { .. } => None,
        };
        let transmitter = &mut self.remote_id.transmitter;
        (transmitter.reported_at, transmitter.fault) = (Some(self.now), fault);
        let status = match fault {
            None => MavOdidArmStatus::MAV_ODID_ARM_STATUS_GOOD_TO_ARM,
            Some(_) => MavOdidArmStatus::MAV_ODID_ARM_STATUS_PRE_ARM_FAIL_GENERIC,
        };
        let error = fault.unwrap_or("").into();
        self.send_from(
            TRANSMITTER,
            &MavMessage::OPEN_DRONE_ID_ARM_STATUS(OPEN_DRONE_ID_ARM_STATUS_DATA { status, error }),
        );
    }

    /// Why it does not arm.
    pub(super) fn remote_id_obstacle(&self) -> Option<&'static str> {
        if !self.has_remote_id() || self.parameters.flag(Parameter::DID_OPTIONS) & ENFORCE_ARMING == 0 {
            return None;
        }
        let RemoteId { has_id, operator, system_at, transmitter, .. } = &self.remote_id;
        let is_old = |at: &Option<Instant>| at.is_none_or(|at| self.now.since(at) > AGE_MAX);
        if !has_id {
            Some("PreArm: OpenDroneID: UA_TYPE required in BasicID")
        } else if *operator == (0, 0) {
            Some("PreArm: OpenDroneID: operator location must be set")
        } else if is_old(&transmitter.reported_at) {
            Some("PreArm: OpenDroneID: ARM_STATUS not available")
        } else if is_old(system_at) {
            Some("PreArm: OpenDroneID: SYSTEM not available")
        } else {
            transmitter.fault.map(|_| "PreArm: OpenDroneID: transmitter")
        }
    }
}
