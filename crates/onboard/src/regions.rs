//! Fence and rally points, for the API: what the flight controller held when it was read last, and a queue of the lists to read or
//! to write. Their points are kept here, and handed to the agent one by one as it asks for them.

use std::collections::VecDeque;

use tokio::sync::oneshot;
use wingbeat_agent::{
    RegionEvent, RegionFinding, RegionKind, RegionOrder, RegionPart, RegionPoint, RegionReport, Rejection,
    Reply, Verdict, first_difference,
};
use wingbeat_api::{
    ApiError, CheckedArea, FenceArea, GroundPoint, RallyPoint, Region, RegionState, RegionWork, check_fence,
    check_rally,
};
use wingbeat_geo::{Instant, Position};
use wingbeat_wire::{Point, VehicleId};

/// What the API asks.
#[derive(Debug)]
pub(crate) enum Ask {
    State(oneshot::Sender<RegionState>),
    Read(oneshot::Sender<Result<RegionState, ApiError>>),
    Write {
        lists: Lists,
        lease: Option<String>,
        /// Whose connection it is, where there are keys.
        from: Option<VehicleId>,
        reply: oneshot::Sender<Result<RegionState, ApiError>>,
    },
}

/// What is to be written, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lists {
    fence: Option<Vec<CheckedArea>>,
    rally: Option<Vec<(Position, i16)>>,
}

/// The lists of a request, or what is wrong with it.
pub(crate) fn check(region: &Region) -> Result<Lists, String> {
    if region.fence.is_none() && region.rally.is_none() {
        return Err("region: found neither fence nor rally, expected at least one".to_owned());
    }
    Ok(Lists {
        fence: region.fence.as_deref().map(check_fence).transpose()?,
        rally: region.rally.as_deref().map(check_rally).transpose()?,
    })
}

fn points_of_fence(areas: &[CheckedArea]) -> Vec<RegionPoint> {
    let point = |part, at: &Position| RegionPoint {
        part,
        latitude_e7: at.latitude_e7,
        longitude_e7: at.longitude_e7,
    };
    let mut points = vec![];
    for area in areas {
        match *area {
            CheckedArea::Polygon(is_inclusion, ref corners) => {
                let part = RegionPart::Corner { is_inclusion, corners: corners.len() as u16 };
                points.extend(corners.iter().map(|corner| point(part, corner)));
            }
            CheckedArea::Circle(is_inclusion, ref centre, radius_m) => {
                let radius_m = radius_m as f32;
                points.push(point(RegionPart::Circle { is_inclusion, radius_m }, centre));
            }
        }
    }
    points
}

fn points_of_rally(rally: &[(Position, i16)]) -> Vec<RegionPoint> {
    let point = |&(at, height_m): &(Position, i16)| RegionPoint {
        part: RegionPart::Rally { height_m },
        latitude_e7: at.latitude_e7,
        longitude_e7: at.longitude_e7,
    };
    rally.iter().map(point).collect()
}

/// The areas that points are of; a point of return, which no copter flies to, is left out. Points of a polygon that is not whole are
/// left out, too: no flight controller keeps one.
fn areas_of(points: &[RegionPoint]) -> Vec<FenceArea> {
    let place = |point: &RegionPoint| GroundPoint::of(point.latitude_e7, point.longitude_e7);
    let mut areas = vec![];
    let mut rest = points;
    while let Some(first) = rest.first() {
        let count = match first.part {
            RegionPart::Corner { is_inclusion, corners } => {
                let count = usize::from(corners).clamp(1, rest.len());
                if count == usize::from(corners) {
                    let corners = rest[..count].iter().map(place).collect();
                    areas.push(FenceArea::Polygon { inclusion: is_inclusion, corners });
                }
                count
            }
            RegionPart::Circle { is_inclusion, radius_m } => {
                let centre = place(first);
                areas.push(FenceArea::Circle { inclusion: is_inclusion, centre, radius_m: radius_m.into() });
                1
            }
            RegionPart::ReturnPoint | RegionPart::Rally { .. } => 1,
        };
        rest = &rest[count..];
    }
    areas
}

fn rally_of(points: &[RegionPoint]) -> Vec<RallyPoint> {
    let one = |point: &RegionPoint| match point.part {
        RegionPart::Rally { height_m } => {
            let GroundPoint { latitude_deg, longitude_deg } =
                GroundPoint::of(point.latitude_e7, point.longitude_e7);
            Some(RallyPoint { latitude_deg, longitude_deg, height_m })
        }
        RegionPart::Corner { .. } | RegionPart::Circle { .. } | RegionPart::ReturnPoint => None,
    };
    points.iter().filter_map(one).collect()
}

/// How home and a route lie in a fence: whether each place and each leg is permitted by every area.
fn judge(areas: &[CheckedArea], home: Option<Position>, route: &[Point]) -> RegionFinding {
    let permits = |at: Position| areas.iter().all(|area| area.area().permits(at));
    if home.is_some_and(|home| !permits(home)) {
        return RegionFinding::Home;
    }
    let mut last = home;
    for (number, point) in (1..).zip(route) {
        let at =
            Position { latitude_e7: point.latitude_e7, longitude_e7: point.longitude_e7, altitude_mm: 0 };
        if !permits(at) {
            return RegionFinding::Waypoint(number);
        }
        if last.is_some_and(|last| !areas.iter().all(|area| area.area().permits_leg(last, at))) {
            return RegionFinding::Leg(number);
        }
        last = Some(at);
    }
    RegionFinding::Inside
}

/// A list that is read, or written.
#[derive(Debug)]
struct Task {
    kind: RegionKind,
    /// What is written; a reading writes nothing.
    points: Option<Vec<RegionPoint>>,
}

impl Task {
    fn order(&self) -> RegionOrder {
        match &self.points {
            None => RegionOrder::Read(self.kind),
            Some(points) => RegionOrder::Write(self.kind, points.len() as u16),
        }
    }
    fn work(&self) -> RegionWork {
        if self.points.is_some() { RegionWork::Writing } else { RegionWork::Reading }
    }
}

/// What is known and under way.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    fence: Option<Vec<RegionPoint>>,
    rally: Option<Vec<RegionPoint>>,
    read_at: Option<Instant>,
    queue: VecDeque<Task>,
    receiving: Vec<Option<RegionPoint>>,
    problems: Vec<String>,
    /// What the agent waits for: points, or the next list.
    wanted: Vec<u16>,
    has_ended: bool,
    /// What the agent was handed last.
    verdict: Option<Verdict>,
    /// What that was judged by: the route, and where home is.
    judged: Option<(u64, Option<Position>)>,
}

/// A position on the ground wanders: home is judged anew where it has moved by more, 1e-7 degree (a metre).
const WANDERS_E7: u32 = 100;

fn is_near(a: Option<Position>, b: Option<Position>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            a.latitude_e7.abs_diff(b.latitude_e7) <= WANDERS_E7
                && a.longitude_e7.abs_diff(b.longitude_e7) <= WANDERS_E7
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

impl Regions {
    pub(crate) fn state(&self, now: Instant) -> RegionState {
        RegionState {
            work: self.queue.front().map_or(RegionWork::None, Task::work),
            fence: self.fence.as_deref().map(areas_of),
            rally: self.rally.as_deref().map(rally_of),
            age_ms: self.read_at.map(|at| now.since(at).as_millis() as u64),
            problems: self.problems.clone(),
            finding: self.verdict.map(|verdict| verdict.finding.to_string()),
        }
    }

    /// Reads both lists.
    pub(crate) fn read(&mut self, begin: impl FnOnce(RegionOrder) -> Option<Reply>) -> Result<(), ApiError> {
        let both = [RegionKind::Fence, RegionKind::Rally].map(|kind| Task { kind, points: None });
        self.begin(both.into(), begin)
    }

    /// Writes lists, and reads them back. A fence that home or the route is outside of is not sent.
    pub(crate) fn write(
        &mut self,
        lists: &Lists,
        home: Option<Position>,
        route: &[Point],
        begin: impl FnOnce(RegionOrder) -> Option<Reply>,
    ) -> Result<(), ApiError> {
        if let Some(areas) = &lists.fence {
            match judge(areas, home, route) {
                RegionFinding::Inside => {}
                finding @ (RegionFinding::Home | RegionFinding::Waypoint(_) | RegionFinding::Leg(_)) => {
                    return Err(conflict(&finding.to_string()));
                }
            }
        }
        let fence = lists.fence.as_deref().map(points_of_fence).map(|points| (RegionKind::Fence, points));
        let rally = lists.rally.as_deref().map(points_of_rally).map(|points| (RegionKind::Rally, points));
        let tasks = fence.into_iter().chain(rally);
        self.begin(tasks.map(|(kind, points)| Task { kind, points: Some(points) }).collect(), begin)
    }

    fn begin(
        &mut self,
        queue: VecDeque<Task>,
        begin: impl FnOnce(RegionOrder) -> Option<Reply>,
    ) -> Result<(), ApiError> {
        match self.queue.front().map(Task::work) {
            None => {}
            Some(RegionWork::Writing) => {
                return Err(conflict("found others being sent, expected nothing under way"));
            }
            Some(RegionWork::Reading | RegionWork::None) => {
                return Err(conflict("found them being read, expected nothing under way"));
            }
        }
        let Some(first) = queue.front() else { return Ok(()) };
        accepted(begin(first.order())).map_err(|why| conflict(&why))?;
        self.problems.clear();
        self.queue = queue;
        Ok(())
    }

    /// Takes what came of it. Whether there is something to do ([`Regions::go_on`]).
    pub(crate) fn take(&mut self, now: Instant, reports: &[RegionReport]) -> bool {
        for report in reports {
            match *report {
                RegionReport::Event(RegionEvent::Wanted(seq)) => self.wanted.push(seq),
                RegionReport::Event(RegionEvent::Count(count)) => {
                    self.receiving = vec![None; count.into()];
                }
                RegionReport::Event(RegionEvent::Held(seq, point)) => {
                    if let Some(slot) = self.receiving.get_mut(usize::from(seq)) {
                        *slot = Some(point);
                    }
                }
                RegionReport::Ended(result) => {
                    let Some(Task { kind, points }) = self.queue.pop_front() else { continue };
                    self.has_ended = true;
                    let held: Vec<_> = std::mem::take(&mut self.receiving).into_iter().flatten().collect();
                    let list = match kind {
                        RegionKind::Fence => &mut self.fence,
                        RegionKind::Rally => &mut self.rally,
                    };
                    let name = kind.name();
                    self.judged = None;
                    match result {
                        Ok(()) => {
                            let different = points.and_then(|points| first_difference(&points, &held));
                            self.problems.extend(different.map(|seq| {
                                format!("{name}: the flight controller holds point {} differently from what was sent", seq + 1)
                            }));
                            (*list, self.read_at) = (Some(held), Some(now));
                        }
                        Err(why) => {
                            // What it holds now is not known.
                            if points.is_some() {
                                *list = None;
                            }
                            self.problems.push(format!("{name}: {why}"));
                        }
                    }
                }
            }
        }
        self.has_ended || !self.wanted.is_empty()
    }

    /// Hands the agent what it waits for, and begins with the next list.
    pub(crate) fn go_on(&mut self, mut feed: impl FnMut(RegionOrder) -> Option<Reply>) {
        for seq in std::mem::take(&mut self.wanted) {
            let points = self.queue.front().and_then(|task| task.points.as_ref());
            if let Some(&point) = points.and_then(|points| points.get(usize::from(seq))) {
                feed(RegionOrder::Supply(seq, point));
            }
        }
        if std::mem::take(&mut self.has_ended)
            && let Some(next) = self.queue.front()
            && let Err(why) = accepted(feed(next.order()))
        {
            self.problems.push(format!("{}: {why}", next.kind.name()));
            self.queue.clear();
        }
    }

    /// How home and the route lie in the fence, where that is another than the agent was handed.
    pub(crate) fn verdict(
        &mut self,
        home: Option<Position>,
        route: &[Point],
        route_hash: u64,
    ) -> Option<Option<Verdict>> {
        let is_writing = self.queue.front().is_some_and(|task| task.kind == RegionKind::Fence);
        let points = self.fence.as_ref().filter(|points| !points.is_empty() && !is_writing);
        if let (Some(_), Some((judged_hash, judged_home))) = (points, self.judged)
            && route_hash == judged_hash
            && is_near(home, judged_home)
        {
            return None;
        }
        self.judged = points.map(|_| (route_hash, home));
        let verdict = points.and_then(|points| {
            let areas = check_fence(&areas_of(points)).ok()?;
            let finding = judge(&areas, home, route);
            Some(Verdict { route_hash, points: points.len() as u16, finding })
        });
        let is_new = verdict != self.verdict;
        self.verdict = verdict;
        is_new.then_some(verdict)
    }
}

fn accepted(reply: Option<Reply>) -> Result<(), String> {
    match reply {
        Some(Reply::Accepted | Reply::AlreadyKnown) => Ok(()),
        Some(Reply::Refused(Rejection::Underway(state))) => {
            Err(format!("found state {state}, expected Start: a flight is judged by the fence as it is"))
        }
        Some(Reply::Refused(why)) => {
            let why = why.to_string();
            Err(why.strip_prefix("parameters: ").unwrap_or(&why).to_owned())
        }
        None => Err("the agent did not answer".into()),
    }
}

fn conflict(message: &str) -> ApiError {
    ApiError { code: "conflict".into(), message: format!("fence and rally points: {message}") }
}

#[cfg(test)]
mod tests {
    use wingbeat_geo::{DVec3, Frame};

    use super::*;

    const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

    fn place(east_m: f64, north_m: f64) -> Position {
        Frame::new(HOME).to_position(DVec3::new(east_m, north_m, 0.0))
    }

    fn square(inclusion: bool, east_m: f64, half_m: f64) -> FenceArea {
        let corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(x, y)| {
            let at = place(east_m + x * half_m, y * half_m);
            GroundPoint::of(at.latitude_e7, at.longitude_e7)
        });
        FenceArea::Polygon { inclusion, corners: corners.into() }
    }

    fn waypoint(east_m: f64) -> Point {
        let at = place(east_m, 0.0);
        Point { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, height_mm: 20_000 }
    }

    fn region() -> Region {
        let at = place(5.0, 5.0);
        let rally =
            RallyPoint { latitude_deg: at.latitude_deg(), longitude_deg: at.longitude_deg(), height_m: 20 };
        Region {
            fence: Some(vec![square(true, 0.0, 100.0), square(false, 40.0, 10.0)]),
            rally: Some(vec![rally]),
        }
    }

    fn taken(_: RegionOrder) -> Option<Reply> {
        Some(Reply::Accepted)
    }

    #[test]
    fn home_waypoints_and_legs_are_judged() {
        let areas = check(&region()).unwrap().fence.unwrap();
        for (home, route, finding) in [
            (0.0, &[10.0, 20.0][..], RegionFinding::Inside),
            (200.0, &[10.0], RegionFinding::Home),
            (0.0, &[10.0, 120.0], RegionFinding::Waypoint(2)),
            (0.0, &[40.0], RegionFinding::Waypoint(1)),
            (0.0, &[10.0, 80.0], RegionFinding::Leg(2)),
        ] {
            let route: Vec<_> = route.iter().map(|&east_m| waypoint(east_m)).collect();
            assert_eq!(judge(&areas, Some(place(home, 0.0)), &route), finding, "{home} {route:?}");
        }
        let mut regions = Regions::default();
        let lists = check(&region()).unwrap();
        let refused =
            regions.write(&lists, Some(place(40.0, 0.0)), &[], |_| panic!("it is sent")).unwrap_err();
        assert_eq!(
            refused.message,
            "fence and rally points: found home outside of the fence, expected it inside"
        );
    }

    #[test]
    fn what_is_sent_is_compared_with_what_is_read_back() {
        let mut regions = Regions::default();
        let lists = check(&region()).unwrap();
        let mut ordered = vec![];
        let begin = |order| {
            ordered.push(order);
            Some(Reply::Accepted)
        };
        regions.write(&lists, None, &[], begin).unwrap();
        assert_eq!(ordered, [RegionOrder::Write(RegionKind::Fence, 8)]);
        let now = Instant::from_secs(2);
        assert_eq!(regions.read(taken).unwrap_err().code, "conflict", "while it is sent");
        let wanted = |seq| RegionReport::Event(RegionEvent::Wanted(seq));
        assert!(regions.take(now, &[wanted(3), wanted(200)]));
        let mut supplied = vec![];
        regions.go_on(|order| {
            supplied.push(order);
            Some(Reply::Accepted)
        });
        let points = points_of_fence(lists.fence.as_ref().unwrap());
        assert_eq!(supplied, [RegionOrder::Supply(3, points[3])]);

        // The fence is held as it was sent; of the rally point another height is.
        let held = |(seq, point): (u16, &RegionPoint)| RegionReport::Event(RegionEvent::Held(seq, *point));
        regions.take(now, &[RegionReport::Event(RegionEvent::Count(8))]);
        regions.take(now, &(0..).zip(&points).map(held).collect::<Vec<_>>());
        assert!(regions.take(now, &[RegionReport::Ended(Ok(()))]));
        regions.go_on(taken);
        assert_eq!(regions.state(now).work, RegionWork::Writing, "the rally point is sent");
        let mut rally = points_of_rally(lists.rally.as_ref().unwrap());
        rally[0].part = RegionPart::Rally { height_m: 30 };
        let events =
            [RegionReport::Event(RegionEvent::Count(1)), held((0, &rally[0])), RegionReport::Ended(Ok(()))];
        regions.take(now, &events);
        let state = regions.state(now);
        assert_eq!((state.work, state.fence, state.age_ms), (RegionWork::None, region().fence, Some(0)));
        let problem = "the rally points: the flight controller holds point 1 differently from what was sent";
        assert_eq!(state.problems, [problem]);

        // The route is judged by what was read back, once for each change.
        let verdict = regions.verdict(None, &[waypoint(40.0)], 7).unwrap().unwrap();
        assert_eq!((verdict.points, verdict.finding), (8, RegionFinding::Waypoint(1)));
        assert_eq!(regions.verdict(None, &[waypoint(40.0)], 7), None);
        // One that waits for its leader's plan has no route, and is judged by where it stands.
        let verdict = regions.verdict(None, &[], 0).unwrap().unwrap();
        assert_eq!((verdict.route_hash, verdict.points, verdict.finding), (0, 8, RegionFinding::Inside));
    }

    #[test]
    fn what_is_refused_or_fails_is_said_and_nothing_follows() {
        let mut regions = Regions::default();
        let refused = regions.read(|_| Some(Reply::Refused(Rejection::MotorsArmed))).unwrap_err();
        assert_eq!(refused.message, "fence and rally points: found armed motors, expected disarmed ones");
        regions.write(&check(&region()).unwrap(), None, &[], taken).unwrap();
        let failure =
            wingbeat_agent::RegionReport::Ended(Err(wingbeat_autopilot::Failure::Silent { tries: 5 }));
        regions.take(Instant::ZERO, &[failure]);
        regions.go_on(|_| Some(Reply::Refused(Rejection::MotorsArmed)));
        let state = regions.state(Instant::ZERO);
        assert_eq!(state.problems.len(), 2, "{state:?}");
        assert_eq!((state.work, state.fence), (RegionWork::None, None));
        assert!(check(&Region::default()).is_err_and(|why| why.contains("neither fence nor rally")));
    }
}
