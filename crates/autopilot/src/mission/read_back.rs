//! Reads back a route that was loaded before this companion began: for an aircraft that is found in flight.
//!
//! The items are handed to the caller as they come, in any order, so that nothing is kept twice.

use wingbeat_geo::{Duration, Instant, ROUTE_MAX};

use super::reader::{ListReader, Reply};
use super::{FIRST_WAYPOINT, HeldHash, ITEMS_MAX, Item, centimetres};
use crate::dialect::{MavCmd, MavMessage, MavMissionType};
use crate::job::{Failure, Progress, Transmit};

/// An aircraft that holds waits no longer: 602 items take 12 s at 57 600 baud.
const GIVE_UP_AFTER: Duration = Duration::from_secs(40);

/// Reads a route of [`super::RouteItems`].
#[derive(Clone, Debug)]
pub struct ReadBack {
    reader: ListReader,
    count: Option<u16>,
    held: HeldHash,
    give_up_at: Instant,
    failed: Option<Failure>,
}

impl ReadBack {
    /// Begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            reader: ListReader::new(now, MavMissionType::MAV_MISSION_TYPE_MISSION),
            count: None,
            held: HeldHash::default(),
            give_up_at: now + GIVE_UP_AFTER,
            failed: None,
        }
    }

    /// When the job is due.
    pub fn due(&self) -> Instant {
        if self.failed.is_some() { Instant::ZERO } else { self.reader.due().min(self.give_up_at) }
    }

    /// Number of items after the take-off, once that is known.
    pub fn items(&self) -> Option<usize> {
        self.count.map(|count| usize::from(count.saturating_sub(FIRST_WAYPOINT)))
    }

    /// Once it is done: what distinguishes the route that the autopilot holds ([`super::Transfer::held`]).
    pub fn held(&self) -> u64 {
        self.held.value()
    }

    /// Takes the autopilot's side of the transfer; `take` is given each item after the take-off with its index from there,
    /// once: waypoints, speeds and yaws.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage, mut take: impl FnMut(usize, &Item)) {
        if self.failed.is_some() || self.reader.is_complete() {
            return;
        }
        match self.reader.on_message(now, message) {
            Reply::Nothing => {}
            Reply::Refused(result) => {
                self.failed = Some(Failure::Refused { what: "to read the mission", result: result as u8 });
            }
            // A repeated request has two answers.
            Reply::Count { count, .. } if self.count == Some(count) => {}
            Reply::Count { .. } if self.count.is_some() => {
                self.failed = Some(Failure::Changed { what: "the mission" });
            }
            Reply::Count { count, .. } if usize::from(count) > ITEMS_MAX => {
                let most = ITEMS_MAX as u16;
                self.failed = Some(Failure::TooMany { what: "mission items", found: count, most });
            }
            Reply::Count { count, .. } => {
                self.count = Some(count);
                self.reader.read_from(now, super::first_of(MavMissionType::MAV_MISSION_TYPE_MISSION), count);
            }
            Reply::Item(m) => {
                let item = Item::of(m);
                match route_item(m.seq, &item) {
                    Ok(Some(index)) => {
                        self.held.add_item(index, &item);
                        take(index, &item);
                    }
                    Ok(None) => {}
                    Err(failure) => self.failed = Some(failure),
                }
            }
        }
    }

    /// Sends when due; done when every item has come.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        if self.reader.is_complete() {
            self.reader.acknowledge(transmit);
            return Progress::Done;
        }
        if now >= self.give_up_at {
            return Progress::Failed(Failure::NoEffect { what: "reading the mission" });
        }
        match self.reader.poll(now, transmit) {
            Ok(()) => Progress::Pending,
            Err(failure) => Progress::Failed(failure),
        }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
/// The index of an item of a route after its take-off; none of its take-off.
fn route_item(seq: u16, item: &Item) -> Result<Option<usize>, Failure> {
    // Outside of what any fence permits it is none of ours, and in millimetres it would not fit.
    let is_place = super::is_relative(item.frame) && centimetres(item.altitude_m).unsigned_abs() <= 1_000_000;
    let within = |value: f32, end: f32| (0.0..end).contains(&value);
    let is_part = match item.command {
        MavCmd::MAV_CMD_NAV_WAYPOINT => is_place && within(item.params[0], 65_536.0),
        MavCmd::MAV_CMD_DO_CHANGE_SPEED => within(item.params[1], 100.005) && item.params[1] > 0.0,
        MavCmd::MAV_CMD_CONDITION_YAW => within(item.params[0], 360.0) && item.params[3] == 0.0,
        _ => false,
    };
    match seq.checked_sub(FIRST_WAYPOINT).map(usize::from) {
        None if item.command == MavCmd::MAV_CMD_NAV_TAKEOFF => Ok(None),
        Some(index) if index < ROUTE_MAX && is_part => Ok(Some(index)),
        None | Some(_) => Err(Failure::NoRoute { seq }),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::{MISSION_ACK_DATA, MISSION_COUNT_DATA, MavFrame, MavMissionResult};
    use crate::job::testing::sent;
    use crate::mission::testing::{COPTER_3, COPTER_4, Copter, ROUNDS};
    use crate::mission::{ItemList as _, Items, Transfer, items_of};
    use crate::target::RelativePosition;
    use core::cell::RefCell;
    use std::vec::Vec;

    fn route(count: i32) -> Vec<RelativePosition> {
        let position = |i| RelativePosition {
            latitude_e7: 394_825_940 + i,
            longitude_e7: -3_462_650,
            height_mm: 20_120,
        };
        (0..count).map(position).collect()
    }

    /// An autopilot that holds a list, of which one answer in `lose` is lost; every other comes twice. How it ended, what was
    /// read, and when.
    fn run(held: impl Fn(u32) -> Items, lose: u32) -> (Progress, Vec<(usize, Item)>, u64) {
        let (job, mut read) = (RefCell::new(ReadBack::new(Instant::ZERO)), Vec::new());
        let (progress, ended_ms) = serve(
            held,
            lose,
            |now, t| job.borrow_mut().poll(now, t),
            |now, answer| {
                job.borrow_mut().on_message(now, answer, |index, item| read.push((index, *item)));
            },
        );
        read.sort_by_key(|(index, _)| *index);
        (progress, read, ended_ms)
    }

    /// The same for any job that reads.
    fn serve(
        held: impl Fn(u32) -> Items,
        lose: u32,
        mut poll: impl FnMut(Instant, &mut Transmit<'_>) -> Progress,
        mut on_message: impl FnMut(Instant, &MavMessage),
    ) -> (Progress, u64) {
        let (mut progress, mut answers, mut ended_ms) = (Progress::Pending, 0, 0);
        for ms in (0..100_000).step_by(20) {
            let now = Instant::from_millis(ms);
            ended_ms = ms;
            for message in sent(|t| progress = poll(now, t)) {
                answers += 1;
                let list = held(answers);
                let answer = match message {
                    MavMessage::MISSION_REQUEST_LIST(_) => MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                        count: list.count() as u16,
                        ..Default::default()
                    }),
                    MavMessage::MISSION_REQUEST_INT(r) => match list.item(usize::from(r.seq)) {
                        Some(item) => {
                            let kind = MavMissionType::MAV_MISSION_TYPE_MISSION;
                            MavMessage::MISSION_ITEM_INT(item.encode(r.seq, kind, 1))
                        }
                        None => MavMessage::MISSION_ACK(MISSION_ACK_DATA {
                            mavtype: MavMissionResult::MAV_MISSION_INVALID_SEQUENCE,
                            ..Default::default()
                        }),
                    },
                    MavMessage::MISSION_ACK(_) => continue,
                    other => panic!("{other:?}"),
                };
                if lose == 0 || answers % lose != 0 {
                    on_message(now, &answer);
                    on_message(now, &answer);
                }
            }
            if progress != Progress::Pending {
                break;
            }
        }
        (progress, ended_ms)
    }

    fn holding(route: &[RelativePosition]) -> Items {
        items_of(route.iter().copied()).unwrap()
    }

    #[test]
    fn a_route_is_read_back_whole_over_a_line_that_loses_answers() {
        for (count, lose) in [(2, 0), (40, 0), (40, 2), (600, 7)] {
            let expected: Vec<_> = route(count).into_iter().map(Item::waypoint).enumerate().collect();
            let (progress, read, _) = run(|_| holding(&route(count)), lose);
            assert_eq!((progress, read), (Progress::Done, expected), "{count}, one in {lose} lost");
        }
    }

    /// Heights of a millimetre, above and below home. The line loses answers, so that items arrive in another order.
    #[test]
    fn a_route_that_was_loaded_is_known_again_whatever_is_held_of_its_heights() {
        let route: Vec<_> = route(100)
            .into_iter()
            .zip(-50..)
            .map(|(p, i)| RelativePosition { height_mm: i * 307, ..p })
            .collect();
        let items = items_of(route.iter().copied()).unwrap();
        let holds = |copter: Copter| -> Items { items.iter().map(|item| copter(*item)).collect() };
        let mut hashes = Vec::new();
        for (copter, lose) in [(COPTER_3, 0), (COPTER_3, 7), (COPTER_4, 3), (ROUNDS, 5)] {
            let loaded = RefCell::new(Transfer::comparing(Instant::ZERO, items.len()));
            let (progress, _) = serve(
                |_| holds(copter),
                lose,
                |now, t| loaded.borrow_mut().poll(now, &items, t),
                |now, answer| loaded.borrow_mut().on_message(now, answer, &items),
            );
            assert_eq!(progress, Progress::Done);
            let found = RefCell::new(ReadBack::new(Instant::ZERO));
            let (progress, _) = serve(
                |_| holds(copter),
                lose.max(1) + 1,
                |now, t| found.borrow_mut().poll(now, t),
                |now, answer| found.borrow_mut().on_message(now, answer, |_, _| ()),
            );
            assert_eq!(progress, Progress::Done);
            assert_eq!(loaded.borrow().held(), found.borrow().held());
            hashes.push(found.borrow().held());
        }
        assert!(hashes[0] == hashes[1] && hashes[0] == hashes[2] && hashes[0] != hashes[3], "{hashes:x?}");
        // A centimetre more at one of them is another route.
        let mut other = holds(COPTER_3);
        other[77].altitude_m += 0.01;
        let found = RefCell::new(ReadBack::new(Instant::ZERO));
        serve(
            |_| other.clone(),
            0,
            |now, t| found.borrow_mut().poll(now, t),
            |now, answer| found.borrow_mut().on_message(now, answer, |_, _| ()),
        );
        assert_ne!(found.borrow().held(), hashes[0]);
    }

    #[test]
    fn what_is_no_route_of_ours_is_named() {
        let with = |seq: usize, change: fn(&mut Item)| {
            let mut items = holding(&route(5));
            change(&mut items[seq]);
            run(|_| items.clone(), 0).0
        };
        let no_route = |seq| Progress::Failed(Failure::NoRoute { seq });
        assert_eq!(with(0, |i| *i = Item::return_to_launch()), Progress::Done, "home is not read");
        assert_eq!(with(1, |i| i.command = MavCmd::MAV_CMD_NAV_WAYPOINT), no_route(1));
        assert_eq!(with(4, |i| *i = Item::speed(5.0)), Progress::Done, "a speed of a leg");
        assert_eq!(with(4, |i| *i = Item::speed(0.0)), no_route(4));
        assert_eq!(with(4, |i| *i = Item::yaw(90.0)), Progress::Done, "a yaw of a leg");
        assert_eq!(with(4, |i| *i = Item { params: [90.0, 0.0, 0.0, 1.0], ..Item::yaw(0.0) }), no_route(4));
        assert_eq!(with(3, |i| i.params[0] = 10.0), Progress::Done, "a hold");
        assert_eq!(with(3, |i| i.params[0] = -1.0), no_route(3));
        assert_eq!(with(3, |i| i.command = MavCmd::MAV_CMD_NAV_LAND), no_route(3));
        assert_eq!(with(3, |i| i.frame = MavFrame::MAV_FRAME_GLOBAL), no_route(3));
        assert_eq!(with(3, |i| i.altitude_m = 3.0e6), no_route(3));
        assert_eq!(with(3, |i| i.altitude_m = f32::NAN), Progress::Done, "as ArduCopter stores it: zero");
    }

    #[test]
    fn reading_ends_in_time_whatever_the_autopilot_does() {
        let silent = run(|_| holding(&route(3)), 1);
        assert_eq!((silent.0, silent.2), (Progress::Failed(Failure::Silent { tries: 6 }), 6_000));
        // It answers now and then, so that no request is ever repeated often enough.
        let mut job = ReadBack::new(Instant::ZERO);
        let (mut progress, mut ended_s) = (Progress::Pending, 0);
        for s in 0..100 {
            let now = Instant::from_secs(s);
            let asked = sent(|t| progress = job.poll(now, t));
            if progress != Progress::Pending {
                ended_s = s;
                break;
            }
            let count = MISSION_COUNT_DATA { count: 602, ..Default::default() };
            if s == 0 {
                job.on_message(now, &MavMessage::MISSION_COUNT(count), |_, _| {});
            } else if let Some(MavMessage::MISSION_REQUEST_INT(r)) = asked.last() {
                let item = holding(&route(600)).item(usize::from(r.seq)).unwrap();
                let kind = MavMissionType::MAV_MISSION_TYPE_MISSION;
                let answer = MavMessage::MISSION_ITEM_INT(item.encode(r.seq, kind, 1));
                job.on_message(now, &answer, |_, _| {});
            }
        }
        assert_eq!(
            (progress, ended_s),
            (Progress::Failed(Failure::NoEffect { what: "reading the mission" }), 40)
        );
    }

    #[test]
    fn a_mission_that_changes_meanwhile_or_is_too_long_is_refused() {
        let changed = Progress::Failed(Failure::Changed { what: "the mission" });
        let mut job = ReadBack::new(Instant::ZERO);
        for count in [10, 11] {
            let count = MavMessage::MISSION_COUNT(MISSION_COUNT_DATA { count, ..Default::default() });
            job.on_message(Instant::ZERO, &count, |_, _| {});
        }
        let mut progress = Progress::Pending;
        sent(|t| progress = job.poll(Instant::ZERO, t));
        assert_eq!(progress, changed);
        let mut long = ReadBack::new(Instant::ZERO);
        let count = MavMessage::MISSION_COUNT(MISSION_COUNT_DATA { count: 603, ..Default::default() });
        long.on_message(Instant::ZERO, &count, |_, _| {});
        sent(|t| progress = long.poll(Instant::ZERO, t));
        let failure = Failure::TooMany { what: "mission items", found: 603, most: 602 };
        assert_eq!(progress, Progress::Failed(failure));
        // Shorter than the count that was given.
        let shorter = run(|answer| holding(&route(if answer < 3 { 9 } else { 2 })), 0).0;
        assert!(matches!(shorter, Progress::Failed(Failure::Refused { .. })), "{shorter:?}");
    }
}
