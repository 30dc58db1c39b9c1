//! Fence and rally points: on the ground only, of a firmware that has such lists, and never while a flight is set up.

use super::*;
use crate::region::{RegionFinding, RegionOrder, RegionReport};
use crate::{RegionEvent, RegionKind, RegionPart, RegionPoint};
use wingbeat_autopilot::dialect::{
    MISSION_ACK_DATA, MISSION_COUNT_DATA, MISSION_REQUEST_DATA, MavMissionResult, MavMissionType,
};

const FENCE: MavMissionType = MavMissionType::MAV_MISSION_TYPE_FENCE;

/// What 4.6.2 says that it can do, and 3.5.7.
const CAPABILITIES: [(u32, u64); 2] = [(0x0406_02ff, 0xfbef), (0x0305_07ff, 0x1bcf)];

fn identified((flight_sw_version, capabilities): (u32, u64)) -> Bench {
    let mut bench = Bench::new();
    bench.second();
    bench.second();
    let refused = bench.feed(Input::Region(RegionOrder::Read(RegionKind::Fence)));
    assert_eq!(refused, Some(Reply::Refused(Rejection::NoVersion)));
    let version = AUTOPILOT_VERSION_DATA {
        flight_sw_version,
        capabilities: wingbeat_autopilot::dialect::MavProtocolCapability::from_bits_retain(capabilities),
        ..Default::default()
    };
    bench.receive(&MavMessage::AUTOPILOT_VERSION(version));
    bench
}

/// What a message of the autopilot brings.
fn told(bench: &mut Bench, message: &MavMessage) -> StdVec<RegionReport> {
    let mut bytes = Vec::<u8, 300>::new();
    encode_v2(MavHeader { system_id: 1, component_id: 1, sequence: 0 }, message, &mut bytes).unwrap();
    let mut out = Outputs::default();
    bench.agent.handle(bench.now, Input::Autopilot(&bytes), &mut out);
    let mut reports: StdVec<_> = out.regions.iter().copied().collect();
    Decoder::default().push(&out.autopilot, |frame| bench.sent.push(frame.message));
    bench.log.extend(core::mem::take(&mut out.log));
    bench.agent.handle(bench.now, Input::Wake, &mut out);
    reports.extend(out.regions.iter().copied());
    Decoder::default().push(&out.autopilot, |frame| bench.sent.push(frame.message));
    bench.log.extend(out.log);
    reports
}

fn corner(i: i32) -> RegionPoint {
    let part = RegionPart::Corner { is_inclusion: true, corners: 3 };
    RegionPoint { part, latitude_e7: 394_825_940 + i, longitude_e7: -3_462_650 }
}

#[test]
fn a_fence_is_sent_point_by_point_and_has_ended_when_it_was_read_back() {
    let mut bench = identified(CAPABILITIES[0]);
    let order = |order| Input::Region(order);
    bench.sent.clear();
    assert_eq!(bench.feed(order(RegionOrder::Write(RegionKind::Fence, 3))), Some(Reply::Accepted));
    assert_eq!(bench.feed(set("RTL_ALT", 1.0)), Some(Reply::Refused(Rejection::UnderWay)));
    assert!(bench.sent.iter().any(|m| matches!(m, MavMessage::MISSION_COUNT(m) if m.count == 3)));
    for seq in 0..3 {
        let request = MISSION_REQUEST_DATA { seq, mission_type: FENCE, ..Default::default() };
        let reports = told(&mut bench, &MavMessage::MISSION_REQUEST(request));
        assert_eq!(reports, [RegionReport::Event(RegionEvent::Wanted(seq))]);
        bench.sent.clear();
        bench.feed(order(RegionOrder::Supply(seq, corner(seq.into()))));
        let item = bench.sent.iter().find_map(|m| match m {
            MavMessage::MISSION_ITEM_INT(item) => Some((item.seq, item.x)),
            _ => None,
        });
        assert_eq!(item, Some((seq, corner(seq.into()).latitude_e7)));
    }
    let ack = MISSION_ACK_DATA {
        mavtype: MavMissionResult::MAV_MISSION_ACCEPTED,
        mission_type: FENCE,
        ..Default::default()
    };
    bench.sent.clear();
    assert_eq!(told(&mut bench, &MavMessage::MISSION_ACK(ack)), []);
    let asks = |m: &MavMessage| matches!(m, MavMessage::MISSION_REQUEST_LIST(_));
    assert!(bench.sent.iter().any(asks), "it is read back: {:?}", bench.sent);
    // Another number than was sent is no success.
    let count = MISSION_COUNT_DATA { count: 2, mission_type: FENCE, ..Default::default() };
    let reports = told(&mut bench, &MavMessage::MISSION_COUNT(count));
    assert!(matches!(reports[..], [RegionReport::Ended(Err(Failure::Different { seq: 2 }))]), "{reports:?}");
    assert!(bench.log.iter().any(|line| line.text.starts_with("the fence: the autopilot holds item 2")));
    assert_eq!(bench.feed(order(RegionOrder::Read(RegionKind::Rally))), Some(Reply::Accepted));
}

#[test]
fn nothing_is_sent_while_armed_or_to_a_firmware_without_such_lists() {
    let mut bench = identified(CAPABILITIES[1]);
    let refused = bench.feed(Input::Region(RegionOrder::Write(RegionKind::Fence, 3)));
    let Some(Reply::Refused(why @ Rejection::NoRegions(_))) = refused else { panic!("{refused:?}") };
    assert!(std::format!("{why}").starts_with("found ArduCopter 3.5.7, which has no list"));

    let mut bench = identified(CAPABILITIES[0]);
    assert_eq!(bench.feed(Input::Region(RegionOrder::Write(RegionKind::Fence, 3))), Some(Reply::Accepted));
    bench.armed = true;
    bench.second();
    bench.sent.clear();
    bench.feed(Input::Region(RegionOrder::Supply(0, corner(0))));
    let is_item = |message: &MavMessage| matches!(message, MavMessage::MISSION_ITEM_INT(_));
    assert!(!bench.sent.iter().any(is_item), "{:?}", bench.sent);
    let line = "reading and setting: found armed motors, expected disarmed ones";
    assert!(bench.log.iter().any(|entry| entry.text == line), "{:?}", bench.log);
    for order in [RegionOrder::Read(RegionKind::Fence), RegionOrder::Write(RegionKind::Rally, 0)] {
        assert_eq!(bench.feed(Input::Region(order)), Some(Reply::Refused(Rejection::MotorsArmed)));
    }
}

#[test]
fn what_is_outside_is_stated_with_its_number() {
    let said = |finding: RegionFinding| std::format!("{finding}");
    assert_eq!(said(RegionFinding::Waypoint(3)), "found waypoint 3 outside of the fence, expected it inside");
    assert_eq!(
        said(RegionFinding::Leg(600)),
        "found the leg to waypoint 600 leaving the fence, expected it inside"
    );
}
