//! One aircraft that is led into a state by nothing but inputs: reports, beacons of one other, commands, effects.

use super::*;

/// In [`HOME`]'s frame, where it is in every state.
pub(super) const HERE: (f64, f64) = (-300.0, 0.0);
/// On its mission, from where it returns to [`HERE`].
pub(super) const AWAY: (f64, f64) = (-250.0, 0.0);
/// Its mission leads from [`HERE`] to there.
pub(super) const LAST: (f64, f64) = (300.0, 0.0);
/// Out of its way.
pub(super) const ELSEWHERE: &[(f64, f64)] = &[(-300.0, 60.0), (-100.0, 60.0)];
/// The path of an aircraft that will come through the position where it is.
pub(super) const THROUGH_US: &[(f64, f64)] = &[(-250.0, 3.0), (-350.0, 3.0)];
/// Where an aircraft is in its way.
pub(super) const NEAR: &[(f64, f64)] = &[(-300.0, 10.0)];
pub(super) const CLIMB: Order = Order::FlyRoute { height_mm: 20_000 };

/// One protocol before, while and after something happens.
pub(super) struct Driver {
    pub(super) protocol: Mbcap,
    pub(super) me: u64,
    pub(super) other: u64,
    pub(super) now: Instant,
    pub(super) at: Telemetry,
    pub(super) orders: Vec<Order>,
    /// The order whose effect was not seen yet.
    asked: Option<Order>,
    pub(super) refused: bool,
    /// Our last beacon.
    pub(super) sent: Beacon,
}

impl Driver {
    /// With a mission, on the ground.
    pub(super) fn new(me: u64, other: u64) -> Self {
        let config = Config { me: VehicleId(me), ..Config::mbcap_e() };
        let mut protocol = Mbcap::new(config, me, Instant::ZERO);
        let mission = [HERE, LAST].map(|(x, y)| point(DVec2::new(x, y), 20.0));
        protocol.set_mission(&mission, MissionExtras::NONE).unwrap();
        let at = Telemetry {
            position: Frame::new(HOME).to_position(DVec3::new(HERE.0, HERE.1, 20.0)),
            height_m: 20.0,
            velocity_m_s: DVec3::ZERO,
            heading_rad: 0.0,
            armed: false,
            landing: false,
            is_located: true,
        };
        let mut driver = Self {
            protocol,
            me,
            other,
            now: Instant::ZERO,
            at,
            orders: Vec::new(),
            asked: None,
            refused: false,
            sent: Beacon::default(),
        };
        driver.report();
        driver
    }

    pub(super) fn feed(&mut self, input: Input<'_>) {
        if let Input::Done(order) | Input::Failed(order) = input
            && self.asked == Some(order)
        {
            self.asked = None;
        }
        let mut actions = Actions::new();
        self.protocol.handle(self.now, input, &mut actions);
        for action in actions {
            match action {
                Action::Order(order) => {
                    self.orders.push(order);
                    self.asked = Some(order);
                }
                Action::Refused(reason) => panic!("{reason}"),
                Action::Broadcast { message: Message::Beacon(beacon), .. } => self.sent = beacon,
                Action::Broadcast { .. } | Action::PassOn | Action::Log(..) => {}
            }
        }
    }

    /// The order that it asked for last takes effect.
    pub(super) fn done(&mut self) {
        let order = self.asked.expect("an order");
        self.feed(Input::Done(order));
    }

    pub(super) fn report(&mut self) {
        self.feed(Input::Telemetry(self.at));
    }

    pub(super) fn fly(&mut self, (x, y): (f64, f64), speed_m_s: f64) {
        self.at.position = Frame::new(HOME).to_position(DVec3::new(x, y, 20.0));
        self.at.velocity_m_s = DVec3::new(speed_m_s, 0.0, 0.0);
        self.report();
    }

    pub(super) fn receive(&mut self, beacon: Beacon) {
        let from = VehicleId(self.other);
        self.feed(Input::Message { from, flight: 0, message: &Message::Beacon(beacon) });
    }

    /// Takes a course of the other; the reason where it is refused.
    pub(super) fn receive_course(&mut self, message: &Message) {
        let from = VehicleId(self.other);
        self.protocol.handle(self.now, Input::Message { from, flight: 0, message }, &mut Actions::new());
    }

    /// The other is in conflict with us.
    pub(super) fn mutual(&mut self, state: Avoidance, at: &[(f64, f64)]) {
        self.receive(beacon(state, Some(self.me), at));
    }

    /// The other is in conflict with us and lands: so low that it is flown over.
    pub(super) fn lands(&mut self) {
        self.lands_at(42.0);
    }

    /// At that altitude; the own is 50 m.
    pub(super) fn lands_at(&mut self, altitude_m: f64) {
        let mut landing = Beacon { landing: true, ..beacon(Avoidance::Normal, Some(self.me), ELSEWHERE) };
        for location in &mut landing.locations {
            location.altitude_mm = (altitude_m * 1e3) as i32;
        }
        self.receive(landing);
    }

    /// As the operator's command comes through the agent: asked for permission first.
    pub(super) fn command(&mut self, command: Command) {
        match self.protocol.permits(command) {
            Ok(()) => self.feed(Input::Operator(command)),
            Err(_) => self.refused = true,
        }
    }

    /// A second passes, with one check at its end.
    pub(super) fn check(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        self.feed(Input::Wake);
    }

    /// Reports once a second.
    pub(super) fn wait(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.check();
            self.report();
        }
    }

    pub(super) fn set_up(&mut self) {
        self.command(Command::Setup);
        self.done();
    }

    pub(super) fn take_off(&mut self) {
        self.set_up();
        self.command(Command::Start);
        self.at.armed = true;
        self.report();
    }

    /// On the mission, its first waypoint reached.
    pub(super) fn normal(&mut self) {
        self.take_off();
        self.done();
        self.feed(Input::Reached(0));
        self.wait(8);
    }

    /// The other is in its way.
    pub(super) fn ordered_to_hold(&mut self) {
        self.normal();
        self.receive(beacon(Avoidance::Normal, None, NEAR));
        self.check();
    }

    pub(super) fn stand_still(&mut self) {
        self.ordered_to_hold();
        self.done();
        self.wait(8);
    }

    /// As the lower of two.
    pub(super) fn moving_aside(&mut self) {
        self.stand_still();
        self.mutual(Avoidance::StandStill, THROUGH_US);
        self.wait(1);
    }

    /// As the lower of two.
    pub(super) fn go_on_please(&mut self) {
        self.stand_still();
        self.mutual(Avoidance::StandStill, ELSEWHERE);
        self.wait(1);
    }

    /// As the higher of two.
    pub(super) fn ordered_to_pass(&mut self) {
        self.stand_still();
        self.mutual(Avoidance::GoOnPlease, ELSEWHERE);
        self.wait(1);
    }

    /// As the higher of two.
    pub(super) fn overtaking(&mut self) {
        self.ordered_to_pass();
        self.done();
        self.wait(6);
    }

    /// Its mission is over.
    pub(super) fn landing(&mut self) {
        self.normal();
        self.feed(Input::Reached(1));
        self.fly(LAST, 0.0);
    }

    /// On its way home, which was seen.
    pub(super) fn returning(&mut self) {
        self.normal();
        self.fly(AWAY, -10.0);
        self.command(Command::Return);
        self.done();
        self.wait(8);
    }

    /// The other is in its way home.
    pub(super) fn returning_ordered_to_hold(&mut self) {
        self.returning();
        self.receive(beacon(Avoidance::Normal, None, NEAR));
        self.check();
    }

    pub(super) fn returning_stand_still(&mut self) {
        self.returning_ordered_to_hold();
        self.fly(AWAY, 0.0);
        self.done();
        self.wait(8);
    }

    pub(super) fn disarm(&mut self) {
        self.at.armed = false;
        self.report();
    }

    /// The same each second, until something follows.
    pub(super) fn until(&mut self, seconds: u32, each: fn(&mut Self)) {
        let (before, orders) = (self.name(), self.orders.len());
        for _ in 0..seconds {
            each(self);
            self.wait(1);
            if self.name() != before || self.orders.len() != orders {
                return;
            }
        }
    }

    pub(super) fn emergency_land(&mut self) {
        self.stand_still();
        for _ in 0..120 {
            self.mutual(Avoidance::Overtaking, ELSEWHERE);
            self.wait(1);
        }
    }

    /// The state, with what its name does not show.
    pub(super) fn name(&self) -> String {
        let avoidance = self.protocol.details().avoidance;
        let stops = avoidance.as_ref().is_some_and(|a| a.avoiding.is_some());
        let (returning, state) = match (self.protocol.view().state, avoidance) {
            (StateId::Aborted, Some(avoidance)) if stops => ("Returning, ", avoidance.state.into()),
            (state, _) => ("", state),
        };
        let asked = match (state, self.asked) {
            (StateId::Normal, Some(Order::Hold)) => ", ordered to hold",
            (StateId::Normal, _) if stops => ", braking",
            (StateId::StandStill | StateId::MovingAside | StateId::GoOnPlease, Some(Order::Resume)) => {
                ", ordered to resume"
            }
            (StateId::StandStill | StateId::MovingAside | StateId::GoOnPlease, Some(Order::Return)) => {
                ", ordered to return"
            }
            _ => "",
        };
        format!("{returning}{state}{asked}")
    }
}

/// A beacon of an aircraft that stands at `at` (metres east and north of home).
pub(super) fn beacon(state: Avoidance, avoiding: Option<u64>, at: &[(f64, f64)]) -> Beacon {
    let location = |&(x, y): &(f64, f64)| {
        let p = Frame::new(HOME).to_position(DVec3::new(x, y, 0.0));
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 50_000 }
    };
    Beacon {
        state,
        avoiding: avoiding.map(VehicleId),
        planned_speed_cm_s: 1_000,
        locations: at.iter().map(location).collect(),
        ..Beacon::default()
    }
}
