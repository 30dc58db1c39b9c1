//! The mission and its protocol (<https://mavlink.io/en/services/mission.html>), vehicle side; with it fence and rally points of 4.x.
//!
//! Fence and rally points are kept and given back, and counted in `FENCE_TOTAL` and `RALLY_TOTAL`; they are not flown by: the
//! fence is a circle and a ceiling, and a return goes home. 3.5.7 takes no notice of the type of a mission: it has one list.
//!
//! An upload replaces items one by one as they arrive, as ArduPilot does: one that breaks off leaves the
//! new beginning and the old rest. Item 0 is home and not part of what is flown. Commands that are not
//! flown are refused, so that what was accepted is what will be flown.

use wingbeat_autopilot::dialect::{
    MISSION_ACK_DATA, MISSION_CLEAR_ALL_DATA, MISSION_COUNT_DATA, MISSION_CURRENT_DATA, MISSION_ITEM_DATA,
    MISSION_ITEM_INT_DATA, MISSION_REQUEST_DATA, MISSION_REQUEST_LIST_DATA, MavCmd, MavFrame, MavMessage,
    MavMissionResult, MavMissionType, MavSeverity, MissionState,
};
use wingbeat_geo::{DVec3, Duration, Instant};

use super::link::Sender;
use super::{FlightController, Parameter};
use crate::motion::Profile;

/// Items that 3.5.7's and 4.6.2's storage holds in SITL, home among them.
const ITEMS_MAX: u16 = 724;
/// Fence and rally points that are taken: `FENCE_TOTAL` and `RALLY_TOTAL` count no further.
const POINTS_MAX: u16 = 127;
/// Corners of a polygon at least.
const CORNERS_MIN: usize = 3;
/// An item is asked for again after this time (measured on 3.5.7).
const REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// An upload is cancelled after so long without an item (measured on 3.5.7: nine requests).
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(8);

/// One item of a mission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) command: MavCmd,
    pub(super) frame: MavFrame,
    pub(super) p: [f32; 4],
    pub(super) latitude_e7: i32,
    pub(super) longitude_e7: i32,
    pub(super) z: f32,
    pub(super) autocontinue: u8,
}

impl Item {
    /// Whether flying it means going somewhere or waiting there.
    pub(super) fn navigates(&self) -> bool {
        !matches!(self.command, MavCmd::MAV_CMD_DO_CHANGE_SPEED | MavCmd::MAV_CMD_CONDITION_YAW)
    }
}

/// A list of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Mission,
    Fence,
    Rally,
}

impl List {
    /// The list of a type of mission; 4.x has no list of the others.
    #[allow(clippy::wildcard_enum_match_arm, reason = "types that no version has a list of")]
    fn of(profile: Profile, kind: MavMissionType) -> Option<Self> {
        match (profile, kind) {
            (Profile::Copter357, _) | (Profile::Copter462, MavMissionType::MAV_MISSION_TYPE_MISSION) => {
                Some(Self::Mission)
            }
            (Profile::Copter462, MavMissionType::MAV_MISSION_TYPE_FENCE) => Some(Self::Fence),
            (Profile::Copter462, MavMissionType::MAV_MISSION_TYPE_RALLY) => Some(Self::Rally),
            (Profile::Copter462, _) => None,
        }
    }
    fn kind(self) -> MavMissionType {
        match self {
            Self::Mission => MavMissionType::MAV_MISSION_TYPE_MISSION,
            Self::Fence => MavMissionType::MAV_MISSION_TYPE_FENCE,
            Self::Rally => MavMissionType::MAV_MISSION_TYPE_RALLY,
        }
    }
    fn items_max(self) -> u16 {
        match self {
            Self::Mission => ITEMS_MAX,
            Self::Fence | Self::Rally => POINTS_MAX,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Upload {
    list: List,
    from: Sender,
    count: u16,
    next: u16,
    asked_at: Instant,
    heard_at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Mission {
    /// Items from number 1 on.
    items: Vec<Item>,
    /// Whether item 0 stands in the store: it does once a mission was uploaded.
    has_home: bool,
    upload: Option<Upload>,
    fence: Vec<Item>,
    rally: Vec<Item>,
    /// Points of a fence, or of rally, until all have arrived.
    arriving: Vec<Item>,
}

impl Mission {
    pub(super) fn item(&self, number: usize) -> Option<&Item> {
        self.items.get(number.checked_sub(1)?)
    }
    /// Item `number` of a list; of the mission none is home.
    fn item_of(&self, list: List, number: u16) -> Option<&Item> {
        match list {
            List::Mission => self.item(number.into()),
            List::Fence => self.fence.get(usize::from(number)),
            List::Rally => self.rally.get(usize::from(number)),
        }
    }
    fn count_of(&self, list: List) -> u16 {
        match list {
            List::Mission => self.count(),
            List::Fence => self.fence.len() as u16,
            List::Rally => self.rally.len() as u16,
        }
    }
    /// Items with home, as the protocol counts.
    pub(super) fn count(&self) -> u16 {
        if self.has_home { self.items.len() as u16 + 1 } else { 0 }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    pub(super) fn starts_with_take_off(&self) -> bool {
        self.items.iter().find(|i| i.navigates()).is_some_and(|i| i.command == MavCmd::MAV_CMD_NAV_TAKEOFF)
    }
    /// Stores item `number`; home itself is only acknowledged.
    fn store(&mut self, number: u16, item: Item) {
        self.has_home = true;
        let Some(index) = usize::from(number).checked_sub(1) else { return };
        match self.items.get_mut(index) {
            Some(slot) => *slot = item,
            None => self.items.push(item),
        }
    }
    fn truncate(&mut self, count: u16) {
        self.items.truncate(usize::from(count).saturating_sub(1));
        self.has_home &= count > 0;
    }
}

/// What a `MISSION_ITEM` of 1e-7 degree and one of degrees have in common.
struct Arriving {
    number: u16,
    item: Item,
    current: u8,
    kind: MavMissionType,
}

const OK: MavMissionResult = MavMissionResult::MAV_MISSION_ACCEPTED;
const ERROR: MavMissionResult = MavMissionResult::MAV_MISSION_ERROR;

/// Whether a fence's polygons are whole: each corner states how many its polygon has.
fn are_polygons_whole(points: &[Item]) -> bool {
    let corners = [
        MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION,
        MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION,
    ];
    let mut rest = points;
    while let Some(first) = rest.first() {
        let is_polygon = corners.contains(&first.command);
        let count = if is_polygon { first.p[0].max(0.0) as usize } else { 1 };
        let Some((these, behind)) = rest.split_at_checked(count) else { return false };
        let is_whole =
            count >= CORNERS_MIN && these.iter().all(|p| (p.command, p.p[0]) == (first.command, first.p[0]));
        if is_polygon && !is_whole {
            return false;
        }
        rest = behind;
    }
    true
}

/// Why an item is not taken.
#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
fn objection(list: List, item: &Item, number: u16) -> Option<MavMissionResult> {
    let place = match item.command {
        MavCmd::MAV_CMD_NAV_FENCE_RETURN_POINT
        | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION
        | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION
        | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_INCLUSION
        | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_EXCLUSION
            if list == List::Fence =>
        {
            true
        }
        MavCmd::MAV_CMD_NAV_RALLY_POINT if list == List::Rally => true,
        _ if list != List::Mission => return Some(MavMissionResult::MAV_MISSION_UNSUPPORTED),
        MavCmd::MAV_CMD_NAV_WAYPOINT
        | MavCmd::MAV_CMD_NAV_TAKEOFF
        | MavCmd::MAV_CMD_NAV_LAND
        | MavCmd::MAV_CMD_NAV_LOITER_UNLIM
        | MavCmd::MAV_CMD_NAV_LOITER_TIME => true,
        MavCmd::MAV_CMD_NAV_RETURN_TO_LAUNCH
        | MavCmd::MAV_CMD_DO_CHANGE_SPEED
        | MavCmd::MAV_CMD_CONDITION_YAW => false,
        _ => return Some(MavMissionResult::MAV_MISSION_UNSUPPORTED),
    };
    let frame_known = matches!(
        item.frame,
        MavFrame::MAV_FRAME_GLOBAL
            | MavFrame::MAV_FRAME_GLOBAL_INT
            | MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT
            | MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT_INT
    );
    if place && !frame_known && (number != 0 || list != List::Mission) {
        return Some(MavMissionResult::MAV_MISSION_UNSUPPORTED_FRAME);
    }
    if place && item.latitude_e7.unsigned_abs() > 900_000_000 {
        return Some(MavMissionResult::MAV_MISSION_INVALID_PARAM5_X);
    }
    if place && item.longitude_e7.unsigned_abs() > 1_800_000_000 {
        return Some(MavMissionResult::MAV_MISSION_INVALID_PARAM6_Y);
    }
    if place && !item.z.is_finite() {
        return Some(MavMissionResult::MAV_MISSION_INVALID_PARAM7);
    }
    if item.p[0].is_nan() && item.command != MavCmd::MAV_CMD_DO_CHANGE_SPEED {
        return Some(MavMissionResult::MAV_MISSION_INVALID_PARAM1);
    }
    None
}

impl FlightController {
    fn acknowledge_mission(&mut self, result: MavMissionResult, kind: MavMissionType, to: Sender) {
        self.send(&MavMessage::MISSION_ACK(MISSION_ACK_DATA {
            target_system: to.system,
            target_component: to.component,
            mavtype: result,
            mission_type: kind,
            opaque_id: 0,
        }));
    }

    /// The list of a type; a type without one is refused.
    fn list_of(&mut self, kind: MavMissionType, from: Sender) -> Option<List> {
        let list = List::of(self.profile(), kind);
        if list.is_none() {
            self.acknowledge_mission(MavMissionResult::MAV_MISSION_UNSUPPORTED, kind, from);
        }
        list
    }

    pub(super) fn handle_mission_count(&mut self, m: &MISSION_COUNT_DATA, from: Sender) {
        let Some(list) = self.list_of(m.mission_type, from) else { return };
        if m.count > list.items_max() {
            return self.acknowledge_mission(MavMissionResult::MAV_MISSION_NO_SPACE, list.kind(), from);
        }
        self.mission.arriving.clear();
        match list {
            List::Mission => self.mission.truncate(m.count),
            List::Fence | List::Rally if m.count == 0 => self.store_points(list),
            List::Fence | List::Rally => {}
        }
        self.mission_changed();
        if m.count == 0 && self.profile() == Profile::Copter462 {
            return self.acknowledge_mission(OK, list.kind(), from);
        }
        // 3.5.7 asks for item 0 even of a mission of none (measured).
        let upload = Upload { list, from, count: m.count, next: 0, asked_at: self.now, heard_at: self.now };
        self.mission.upload = Some(upload);
        self.request_item(upload);
    }

    fn request_item(&mut self, upload: Upload) {
        self.send(&MavMessage::MISSION_REQUEST(MISSION_REQUEST_DATA {
            seq: upload.next,
            target_system: upload.from.system,
            target_component: upload.from.component,
            mission_type: upload.list.kind(),
        }));
    }

    /// Requests an item again that does not come, then cancels the upload.
    pub(super) fn run_mission_transfer(&mut self) {
        let Some(upload) = self.mission.upload else { return };
        if self.now.since(upload.heard_at) > UPLOAD_TIMEOUT {
            self.mission.upload = None;
            // 3.5.7 falls silent, 4.x reports it.
            if self.profile() == Profile::Copter462 {
                let result = MavMissionResult::MAV_MISSION_OPERATION_CANCELLED;
                self.acknowledge_mission(result, upload.list.kind(), upload.from);
            }
        } else if self.now.since(upload.asked_at) >= REQUEST_INTERVAL {
            self.mission.upload = Some(Upload { asked_at: self.now, ..upload });
            self.request_item(upload);
        }
    }

    pub(super) fn handle_mission_item(&mut self, m: &MISSION_ITEM_DATA, from: Sender) {
        // Out of range saturates and is refused with the field's name.
        let e7 = |degrees: f32| libm::round(f64::from(degrees) * 1e7) as i32;
        let item = Item {
            command: m.command,
            frame: m.frame,
            p: [m.param1, m.param2, m.param3, m.param4],
            latitude_e7: e7(m.x),
            longitude_e7: e7(m.y),
            z: m.z,
            autocontinue: m.autocontinue,
        };
        let (number, current, kind) = (m.seq, m.current, m.mission_type);
        self.take_item(&Arriving { number, item, current, kind }, from);
    }

    pub(super) fn handle_mission_item_int(&mut self, m: &MISSION_ITEM_INT_DATA, from: Sender) {
        let item = Item {
            command: m.command,
            frame: m.frame,
            p: [m.param1, m.param2, m.param3, m.param4],
            latitude_e7: m.x,
            longitude_e7: m.y,
            z: m.z,
            autocontinue: m.autocontinue,
        };
        let (number, current, kind) = (m.seq, m.current, m.mission_type);
        self.take_item(&Arriving { number, item, current, kind }, from);
    }

    fn take_item(&mut self, arriving: &Arriving, from: Sender) {
        let Arriving { number, item, current, kind } = *arriving;
        let Some(list) = self.list_of(kind, from) else { return };
        let kind = list.kind();
        if list == List::Mission && (current == 2 || current == 3) {
            let taken = self.take_guided_item(&item, current);
            return self.acknowledge_mission(if taken { OK } else { ERROR }, kind, from);
        }
        let Some(upload) = self.mission.upload.filter(|upload| upload.list == list) else {
            return self.acknowledge_mission(ERROR, kind, from);
        };
        if number != upload.next {
            return self.acknowledge_mission(MavMissionResult::MAV_MISSION_INVALID_SEQUENCE, kind, from);
        }
        if let Some(result) = objection(list, &item, number) {
            return self.acknowledge_mission(result, kind, from);
        }
        match list {
            List::Mission => self.mission.store(number, item),
            List::Fence | List::Rally => self.mission.arriving.push(item),
        }
        let next = number + 1;
        if next >= upload.count {
            self.mission.upload = None;
            if list == List::Fence && !are_polygons_whole(&self.mission.arriving) {
                return self.acknowledge_mission(ERROR, kind, from);
            }
            self.store_points(list);
            self.mission_changed();
            self.acknowledge_mission(OK, kind, from);
            let info = MavSeverity::MAV_SEVERITY_INFO;
            match list {
                List::Mission => self.send_text(info, format_args!("Flight plan received")),
                List::Rally => self.send_text(info, format_args!("Rally points received")),
                List::Fence => {}
            }
        } else {
            let upload = Upload { next, asked_at: self.now, heard_at: self.now, ..upload };
            self.mission.upload = Some(upload);
            self.request_item(upload);
        }
    }

    fn take_guided_item(&mut self, item: &Item, current: u8) -> bool {
        let place = self.place(item.latitude_e7, item.longitude_e7, f64::from(item.z), item.frame);
        match place {
            Some(place) if current == 3 => self.change_altitude(place.z),
            Some(place) => item.command == MavCmd::MAV_CMD_NAV_WAYPOINT && self.go_to(place),
            None => false,
        }
    }

    /// What has arrived replaces the points of a list.
    fn store_points(&mut self, list: List) {
        let points = core::mem::take(&mut self.mission.arriving);
        let (stored, total) = match list {
            List::Mission => return,
            List::Fence => (&mut self.mission.fence, Parameter::FENCE_TOTAL),
            List::Rally => (&mut self.mission.rally, Parameter::RALLY_TOTAL),
        };
        *stored = points;
        self.parameters.set(total, stored.len() as f32);
    }

    fn mission_changed(&mut self) {
        self.parameters.set(Parameter::MIS_TOTAL, f32::from(self.mission.count()));
    }

    pub(super) fn handle_mission_clear_all(&mut self, m: &MISSION_CLEAR_ALL_DATA, from: Sender) {
        let new = self.profile() == Profile::Copter462;
        let lists: &[List] = if new && m.mission_type == MavMissionType::MAV_MISSION_TYPE_ALL {
            &[List::Mission, List::Fence, List::Rally]
        } else {
            match self.list_of(m.mission_type, from) {
                Some(List::Mission) => &[List::Mission],
                Some(List::Fence) => &[List::Fence],
                Some(List::Rally) => &[List::Rally],
                None => return,
            }
        };
        self.mission.upload = None;
        self.mission.arriving.clear();
        for &list in lists {
            if list == List::Mission {
                self.mission.truncate(0);
                self.auto.reset();
                self.mission_changed();
            }
            self.store_points(list);
        }
        let kind = if new { m.mission_type } else { List::Mission.kind() };
        self.acknowledge_mission(OK, kind, from);
    }

    pub(super) fn handle_mission_request_list(&mut self, m: &MISSION_REQUEST_LIST_DATA, from: Sender) {
        let Some(list) = self.list_of(m.mission_type, from) else { return };
        // Reading ends an upload that is under way.
        self.mission.upload = None;
        let count = self.mission.count_of(list);
        self.send(&MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
            count,
            target_system: from.system,
            target_component: from.component,
            mission_type: list.kind(),
            opaque_id: 0,
        }));
    }

    pub(super) fn handle_mission_request(
        &mut self,
        number: u16,
        kind: MavMissionType,
        as_int: bool,
        from: Sender,
    ) {
        let Some(list) = self.list_of(kind, from) else { return };
        let kind = list.kind();
        // Home is given without a mission, too (measured on both).
        let is_home = list == List::Mission && number == 0;
        if !is_home && number >= self.mission.count_of(list) {
            let result = match self.profile() {
                Profile::Copter357 => ERROR,
                Profile::Copter462 => MavMissionResult::MAV_MISSION_INVALID_SEQUENCE,
            };
            return self.acknowledge_mission(result, kind, from);
        }
        let item = self.mission.item_of(list, number).copied().unwrap_or_else(|| self.home_item());
        let current =
            u8::from(list == List::Mission && usize::from(number) == self.auto.current() && number != 0);
        let data = MISSION_ITEM_INT_DATA {
            param1: item.p[0],
            param2: item.p[1],
            param3: item.p[2],
            param4: item.p[3],
            x: item.latitude_e7,
            y: item.longitude_e7,
            z: item.z,
            seq: number,
            command: item.command,
            target_system: from.system,
            target_component: from.component,
            frame: item.frame,
            current,
            autocontinue: item.autocontinue,
            mission_type: kind,
        };
        let message = if as_int {
            MavMessage::MISSION_ITEM_INT(data)
        } else {
            MavMessage::MISSION_ITEM(MISSION_ITEM_DATA {
                param1: data.param1,
                param2: data.param2,
                param3: data.param3,
                param4: data.param4,
                x: (f64::from(data.x) * 1e-7) as f32,
                y: (f64::from(data.y) * 1e-7) as f32,
                z: data.z,
                seq: number,
                command: data.command,
                target_system: data.target_system,
                target_component: data.target_component,
                frame: data.frame,
                current,
                autocontinue: data.autocontinue,
                mission_type: kind,
            })
        };
        self.send(&message);
    }

    fn home_item(&self) -> Item {
        let home = self.frame.to_position(self.home_or_origin());
        Item {
            command: MavCmd::MAV_CMD_NAV_WAYPOINT,
            frame: MavFrame::MAV_FRAME_GLOBAL,
            p: [0.0; 4],
            latitude_e7: home.latitude_e7,
            longitude_e7: home.longitude_e7,
            z: home.altitude_m() as f32,
            autocontinue: 1,
        }
    }

    pub(super) fn handle_mission_set_current(&mut self, number: u16) {
        // A number that the mission does not have is left unanswered.
        if self.set_current(number) {
            self.send_mission_current();
        }
    }

    /// Goes on with item `number`; false if the mission does not have it.
    pub(super) fn set_current(&mut self, number: u16) -> bool {
        let is_there = number < self.mission.count();
        if is_there {
            self.jump_to_item(usize::from(number));
        }
        is_there
    }

    pub(super) fn send_mission_current(&mut self) {
        let seq = self.auto.current() as u16;
        self.send(&MavMessage::MISSION_CURRENT(MISSION_CURRENT_DATA {
            seq,
            total: self.mission.count().saturating_sub(1),
            mission_state: MissionState::MISSION_STATE_UNKNOWN,
            mission_mode: 0,
            mission_id: 0,
            fence_id: 0,
            rally_points_id: 0,
        }));
    }

    /// Where an item lies. A place of 0/0 means here, an altitude of 0 the present one (3.5.7,
    /// `do_nav_wp`).
    pub(super) fn item_place(&self, item: &Item) -> Option<DVec3> {
        let here = self.vehicle.state().position;
        let at = self.place(item.latitude_e7, item.longitude_e7, f64::from(item.z), item.frame)?;
        let flat = if item.latitude_e7 == 0 && item.longitude_e7 == 0 { here } else { at };
        Some(DVec3::new(flat.x, flat.y, if item.z == 0.0 { here.z } else { at.z }))
    }
}
