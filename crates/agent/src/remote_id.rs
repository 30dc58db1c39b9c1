//! Remote ID: what is known of the operator, and whether the transmitter lets the aircraft arm.

use wingbeat_autopilot::Transmit;
use wingbeat_autopilot::codec::Frame;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::remote_id::{ArmStatus, Gate, ID_MAX, OperatorPlace, PlaceSource, RemoteId};
use wingbeat_geo::Instant;
use wingbeat_protocol::{Text, text};

use crate::Agent;
use crate::checks::REMOTE_ID;
use crate::config::{Operator, RemoteIdConfig};
use crate::status::Check;

/// The state of Remote ID of one aircraft.
#[derive(Clone, Debug)]
pub(crate) struct RemoteIdState {
    sender: RemoteId,
    arm_status: Option<ArmStatus>,
}

/// What an operator sees of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteIdStatus {
    /// The aircraft's id.
    pub uas_id: heapless::String<ID_MAX>,
    /// Where the operator stands, as it is stated; nothing before it is known.
    pub operator: Option<OperatorPlace>,
    /// Whether the transmitter lets the aircraft arm; nothing where none reports.
    pub may_arm: Option<bool>,
    /// What stands against arming, or that nothing does.
    pub detail: Text,
}

impl RemoteIdState {
    pub(crate) fn new(now: Instant) -> Self {
        Self { sender: RemoteId::new(now), arm_status: None }
    }

    pub(crate) fn due(&self) -> Instant {
        self.sender.due()
    }

    /// The transmitter is a component of our autopilot's system, and no other.
    pub(crate) fn on_frame(&mut self, now: Instant, system_id: Option<u8>, frame: &Frame) {
        if let MavMessage::OPEN_DRONE_ID_ARM_STATUS(m) = &frame.message
            && system_id.is_some_and(|id| u32::from(id) == frame.header.system_id)
        {
            self.arm_status = ArmStatus::of(now, frame.header.component_id, m).or(self.arm_status.take());
        }
    }

    pub(crate) fn poll(
        &mut self,
        now: Instant,
        config: &RemoteIdConfig,
        place: Option<OperatorPlace>,
        unix_us: Option<u64>,
        transmit: &mut Transmit<'_>,
    ) {
        // Without room it stays due.
        let _ = self.sender.poll(now, &config.identity, place, unix_us, transmit);
    }
}

impl Agent {
    /// Where the operator stands, as far as it is known.
    pub(crate) fn operator_place(&self) -> Option<OperatorPlace> {
        match self.config.remote_id.as_ref()?.operator {
            Operator::Fixed(place) => Some(place),
            Operator::TakeOff => {
                // Its altitude is above sea level, and not above the ellipsoid.
                let at = self.telemetry.disarmed_position?;
                Some(OperatorPlace {
                    latitude_e7: at.latitude_e7,
                    longitude_e7: at.longitude_e7,
                    altitude_m: None,
                    source: PlaceSource::TakeOff,
                })
            }
        }
    }

    pub(crate) fn remote_id_status(&self, now: Instant) -> Option<RemoteIdStatus> {
        let config = self.config.remote_id.as_ref()?;
        let operator = self.operator_place();
        let (may_arm, detail) = match (ArmStatus::gate(self.remote_id.arm_status.as_ref(), now), operator) {
            (_, None) => (Some(false), text!("the operator's location is not known")),
            (Gate::Closed(why), Some(_)) => {
                (Some(false), text!("the transmitter does not let it arm: {why}"))
            }
            (Gate::Silent, Some(_)) => {
                (None, text!("no transmitter has reported for 3 s (DID_ENABLE, DID_MAVPORT, its wiring)"))
            }
            (Gate::Open, Some(_)) => (Some(true), text!("the transmitter lets it arm")),
        };
        Some(RemoteIdStatus { uas_id: config.identity.uas_id.clone(), operator, may_arm, detail })
    }

    /// Where Remote ID is configured, no setup begins without it.
    pub(crate) fn remote_id_check(&self, now: Instant) -> Option<Check> {
        let RemoteIdStatus { may_arm, detail, .. } = self.remote_id_status(now)?;
        Some(Check { name: REMOTE_ID, passed: may_arm == Some(true), is_required: true, detail })
    }
}
