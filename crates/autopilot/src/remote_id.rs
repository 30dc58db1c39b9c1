//! Remote ID (Open Drone ID): which aircraft this is, and where its operator stands, for the autopilot's transmitter.
//!
//! ArduCopter's `AP_OpenDroneID` (since 4.2) broadcasts where the aircraft is, and passes on what it is given here. With
//! `DID_OPTIONS` bit 0 it does not arm without an id, without an operator's location, or where the last
//! `OPEN_DRONE_ID_SYSTEM` or `OPEN_DRONE_ID_SYSTEM_UPDATE`, or the transmitter's `OPEN_DRONE_ID_ARM_STATUS`, is older than 3 s
//! (`AP_OpenDroneID::pre_arm_check`). So an update leaves each second, and one of the others in turn with it.

use heapless::String;
use serde::{Deserialize, Serialize};
use wingbeat_geo::{Duration, Instant};

use crate::codec::BufferFull;
use crate::codec::framing::Framing;
use crate::dialect::{
    MavMessage, MavOdidArmStatus, MavOdidCategoryEu, MavOdidClassEu, MavOdidClassificationType,
    MavOdidDescType, MavOdidIdType, MavOdidOperatorIdType, MavOdidOperatorLocationType, MavOdidUaType,
    OPEN_DRONE_ID_ARM_STATUS_DATA, OPEN_DRONE_ID_BASIC_ID_DATA, OPEN_DRONE_ID_OPERATOR_ID_DATA,
    OPEN_DRONE_ID_SELF_ID_DATA, OPEN_DRONE_ID_SYSTEM_DATA, OPEN_DRONE_ID_SYSTEM_UPDATE_DATA,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};

/// From one update to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// An older report of the transmitter says nothing: as ArduCopter judges it.
const FRESH: Duration = Duration::from_secs(3);
/// Components of transmitters (<https://mavlink.io/en/messages/common.html#MAV_COMP_ID_ODID_TXRX_1>).
const TRANSMITTERS: core::ops::RangeInclusive<u8> = 236..=238;
/// 2019-01-01, UTC, seconds after 1970: what timestamps are counted from (ASTM F3411).
const EPOCH_S: u64 = 1_546_300_800;
/// The standard's value for an altitude that is not known, metres.
const NO_ALTITUDE_M: f32 = -1_000.0;

/// The longest id, characters (ASTM F3411).
pub const ID_MAX: usize = 20;
/// The longest description, characters.
pub const DESCRIPTION_MAX: usize = 23;

/// Kinds of an aircraft's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdKind {
    /// Its serial number (ANSI/CTA-2063-A).
    #[default]
    SerialNumber,
    /// Its registration with an authority.
    Registration,
    /// A UUID that traffic management assigned.
    TrafficUuid,
    /// An id of one flight.
    Session,
}

/// Where the operator stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatorPlace {
    /// 1e-7 degree.
    pub latitude_e7: i32,
    /// 1e-7 degree.
    pub longitude_e7: i32,
    /// Above the WGS 84 ellipsoid, metres, where it is known.
    pub altitude_m: Option<f32>,
    /// How it is known.
    pub source: PlaceSource,
}

/// How the operator's location is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaceSource {
    /// It is configured.
    Fixed,
    /// Where the aircraft took off.
    #[default]
    TakeOff,
}

/// What is broadcast of one aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Its id.
    pub uas_id: String<ID_MAX>,
    /// What kind of id that is.
    pub id_kind: IdKind,
    /// The operator's id with the authority; empty for none.
    pub operator_id: String<ID_MAX>,
    /// What the flight is for; empty for none.
    pub description: String<DESCRIPTION_MAX>,
}

/// What the transmitter reports.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmStatus {
    /// When it was received.
    pub at: Instant,
    /// Why it does not let the aircraft arm; nothing where it does.
    pub fault: Option<String<50>>,
}

/// Whether the transmitter lets the aircraft arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate<'a> {
    /// It does.
    Open,
    /// It does not, for this reason.
    Closed(&'a str),
    /// No transmitter has reported for [`FRESH`].
    Silent,
}

impl ArmStatus {
    /// What a frame from `component` of our autopilot's system states.
    pub fn of(now: Instant, component: u8, m: &OPEN_DRONE_ID_ARM_STATUS_DATA) -> Option<Self> {
        if !TRANSMITTERS.contains(&component) && component != AUTOPILOT_COMPONENT_ID {
            return None;
        }
        let fault = match m.status {
            MavOdidArmStatus::MAV_ODID_ARM_STATUS_GOOD_TO_ARM => None,
            MavOdidArmStatus::MAV_ODID_ARM_STATUS_PRE_ARM_FAIL_GENERIC => {
                let text = m.error.to_str().unwrap_or("");
                Some(if text.is_empty() { "without a reason" } else { text }.chars().take(50).collect())
            }
        };
        Some(Self { at: now, fault })
    }

    /// What that means at `now`.
    pub fn gate(status: Option<&Self>, now: Instant) -> Gate<'_> {
        match status.filter(|status| now.since(status.at) <= FRESH) {
            None => Gate::Silent,
            Some(Self { fault: None, .. }) => Gate::Open,
            Some(Self { fault: Some(why), .. }) => Gate::Closed(why),
        }
    }
}

/// Sends them.
#[derive(Clone, Copy, Debug)]
pub struct RemoteId {
    due: Instant,
    /// Messages that have left in turn.
    turn: u8,
}

impl RemoteId {
    /// The first leaves now.
    pub fn new(now: Instant) -> Self {
        Self { due: now, turn: 0 }
    }

    /// When [`RemoteId::poll`] is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Sends what is due. Without an operator's location nothing states one: that of another place would be wrong.
    ///
    /// # Errors
    /// No room; it stays due.
    pub fn poll(
        &mut self,
        now: Instant,
        identity: &Identity,
        operator: Option<OperatorPlace>,
        unix_us: Option<u64>,
        transmit: &mut Transmit<'_>,
    ) -> Result<(), BufferFull> {
        if now < self.due {
            return Ok(());
        }
        // MAVLink 1 has no such messages.
        if matches!(transmit.framing, Framing::V1) {
            self.due = now + PERIOD;
            return Ok(());
        }
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let timestamp = unix_us.map_or(0, |us| (us / 1_000_000).saturating_sub(EPOCH_S)) as u32;
        // SYSTEM comes first, because ArduCopter takes no update before it.
        let message = match (self.turn % 4, operator) {
            (0, Some(place)) => Some(MavMessage::OPEN_DRONE_ID_SYSTEM(OPEN_DRONE_ID_SYSTEM_DATA {
                operator_latitude: place.latitude_e7,
                operator_longitude: place.longitude_e7,
                operator_altitude_geo: place.altitude_m.unwrap_or(NO_ALTITUDE_M),
                // One aircraft, no area.
                area_count: 1,
                area_radius: 0,
                area_ceiling: NO_ALTITUDE_M,
                area_floor: NO_ALTITUDE_M,
                timestamp,
                target_system,
                target_component,
                id_or_mac: [0; 20],
                operator_location_type: match place.source {
                    PlaceSource::Fixed => MavOdidOperatorLocationType::MAV_ODID_OPERATOR_LOCATION_TYPE_FIXED,
                    PlaceSource::TakeOff => {
                        MavOdidOperatorLocationType::MAV_ODID_OPERATOR_LOCATION_TYPE_TAKEOFF
                    }
                },
                classification_type: MavOdidClassificationType::MAV_ODID_CLASSIFICATION_TYPE_UNDECLARED,
                category_eu: MavOdidCategoryEu::MAV_ODID_CATEGORY_EU_UNDECLARED,
                class_eu: MavOdidClassEu::MAV_ODID_CLASS_EU_UNDECLARED,
            })),
            (1, _) => Some(MavMessage::OPEN_DRONE_ID_BASIC_ID(OPEN_DRONE_ID_BASIC_ID_DATA {
                target_system,
                target_component,
                id_or_mac: [0; 20],
                id_type: match identity.id_kind {
                    IdKind::SerialNumber => MavOdidIdType::MAV_ODID_ID_TYPE_SERIAL_NUMBER,
                    IdKind::Registration => MavOdidIdType::MAV_ODID_ID_TYPE_CAA_REGISTRATION_ID,
                    IdKind::TrafficUuid => MavOdidIdType::MAV_ODID_ID_TYPE_UTM_ASSIGNED_UUID,
                    IdKind::Session => MavOdidIdType::MAV_ODID_ID_TYPE_SPECIFIC_SESSION_ID,
                },
                ua_type: MavOdidUaType::MAV_ODID_UA_TYPE_HELICOPTER_OR_MULTIROTOR,
                uas_id: padded(&identity.uas_id),
            })),
            (2, _) if !identity.operator_id.is_empty() => {
                Some(MavMessage::OPEN_DRONE_ID_OPERATOR_ID(OPEN_DRONE_ID_OPERATOR_ID_DATA {
                    target_system,
                    target_component,
                    id_or_mac: [0; 20],
                    operator_id_type: MavOdidOperatorIdType::MAV_ODID_OPERATOR_ID_TYPE_CAA,
                    operator_id: identity.operator_id.as_str().into(),
                }))
            }
            (3, _) if !identity.description.is_empty() => {
                Some(MavMessage::OPEN_DRONE_ID_SELF_ID(OPEN_DRONE_ID_SELF_ID_DATA {
                    target_system,
                    target_component,
                    id_or_mac: [0; 20],
                    description_type: MavOdidDescType::MAV_ODID_DESC_TYPE_TEXT,
                    description: identity.description.as_str().into(),
                }))
            }
            _ => None,
        };
        if let Some(message) = message {
            transmit.send(&message)?;
        }
        self.turn = (self.turn + 1) % 4;
        self.due = now + PERIOD;
        if let Some(place) = operator {
            transmit.send(&MavMessage::OPEN_DRONE_ID_SYSTEM_UPDATE(OPEN_DRONE_ID_SYSTEM_UPDATE_DATA {
                operator_latitude: place.latitude_e7,
                operator_longitude: place.longitude_e7,
                operator_altitude_geo: place.altitude_m.unwrap_or(NO_ALTITUDE_M),
                timestamp,
                target_system,
                target_component,
            }))?;
        }
        Ok(())
    }
}

/// An id in its field.
fn padded(id: &str) -> [u8; ID_MAX] {
    let mut field = [0; ID_MAX];
    for (byte, &from) in field.iter_mut().zip(id.as_bytes()) {
        *byte = from;
    }
    field
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;

    #[test]
    fn an_update_leaves_each_second_and_the_others_in_turn() {
        let now = Instant::from_secs(5);
        let mut remote_id = RemoteId::new(now);
        let identity = Identity {
            uas_id: "1581F5FJD238800D26V9".try_into().unwrap(),
            id_kind: IdKind::SerialNumber,
            operator_id: "FIN87astrdge12k8".try_into().unwrap(),
            description: "survey".try_into().unwrap(),
        };
        let operator = OperatorPlace {
            latitude_e7: 394_825_940,
            longitude_e7: -3_462_650,
            altitude_m: Some(98.5),
            source: PlaceSource::Fixed,
        };
        let mut leave = |second: u64, operator| {
            let at = now + Duration::from_secs(second);
            let unix_us = Some((EPOCH_S + 1_000 + second) * 1_000_000);
            sent(|t| remote_id.poll(at, &identity, operator, unix_us, t).unwrap())
        };
        let [MavMessage::OPEN_DRONE_ID_SYSTEM(system), MavMessage::OPEN_DRONE_ID_SYSTEM_UPDATE(update)] =
            &leave(0, Some(operator))[..]
        else {
            panic!("SYSTEM first")
        };
        assert_eq!(
            (system.operator_latitude, system.timestamp, system.target_system),
            (394_825_940, 1_000, 1)
        );
        assert_eq!((update.operator_longitude, update.operator_altitude_geo), (-3_462_650, 98.5));
        assert!(leave(0, Some(operator)).is_empty(), "not due");
        let [MavMessage::OPEN_DRONE_ID_BASIC_ID(basic), _] = &leave(1, Some(operator))[..] else {
            panic!("BASIC_ID")
        };
        assert_eq!(&basic.uas_id, b"1581F5FJD238800D26V9");
        assert!(matches!(leave(2, Some(operator))[..], [MavMessage::OPEN_DRONE_ID_OPERATOR_ID(_), _]));
        assert!(matches!(leave(3, Some(operator))[..], [MavMessage::OPEN_DRONE_ID_SELF_ID(_), _]));
        assert!(matches!(leave(4, Some(operator))[..], [MavMessage::OPEN_DRONE_ID_SYSTEM(_), _]));
        // No location of the operator: none is stated, and the aircraft's id leaves.
        assert!(matches!(leave(5, None)[..], [MavMessage::OPEN_DRONE_ID_BASIC_ID(_)]));
        leave(6, None);
        leave(7, None);
        assert!(leave(8, None).is_empty());
    }

    #[test]
    fn the_gate_is_what_the_transmitter_reported_lately() {
        let now = Instant::from_secs(5);
        let status = |status, error: &str| OPEN_DRONE_ID_ARM_STATUS_DATA { status, error: error.into() };
        let good = status(MavOdidArmStatus::MAV_ODID_ARM_STATUS_GOOD_TO_ARM, "");
        let bad = status(MavOdidArmStatus::MAV_ODID_ARM_STATUS_PRE_ARM_FAIL_GENERIC, "missing basic_id");
        assert_eq!(ArmStatus::of(now, 190, &good), None, "a ground station is no transmitter");
        let open = ArmStatus::of(now, 236, &good);
        assert_eq!(ArmStatus::gate(open.as_ref(), now + FRESH), Gate::Open);
        assert_eq!(ArmStatus::gate(open.as_ref(), now + FRESH + Duration::from_millis(1)), Gate::Silent);
        let closed = ArmStatus::of(now, 1, &bad);
        assert_eq!(ArmStatus::gate(closed.as_ref(), now), Gate::Closed("missing basic_id"));
        assert_eq!(ArmStatus::gate(None, now), Gate::Silent);
    }
}
