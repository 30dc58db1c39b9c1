//! *Start* that one aircraft of a swarm refuses in flight.

use super::*;
use wingbeat_protocol::{Order, follow_me};

/// Aircraft of one swarm that receive each other. An order takes effect at once.
struct Flock {
    benches: StdVec<Bench>,
    /// The pilot of the first aircraft flies it at this height; `None` where no pilot does.
    piloted_mm: Option<i32>,
}

impl Flock {
    fn new(coordinations: [Coordination; 2], piloted_mm: Option<i32>) -> Self {
        let mut benches: StdVec<_> = coordinations.into_iter().map(Self::bench).collect();
        benches[1].at_e7.1 += 3_000;
        Self { benches, piloted_mm }
    }

    fn bench(coordination: Coordination) -> Bench {
        // The master has the mission; a piloted one has none.
        let has_mission =
            matches!(coordination, Coordination::Muscop(_)) && coordination.me() == VehicleId(1);
        let mut bench = Bench::new();
        let mut config = Config::new(coordination);
        config.companion_loss = CompanionLoss::EndsWithIt;
        bench.agent = Agent::new(config, 1, Instant::ZERO).unwrap();
        let point =
            |n| Point { latitude_e7: 394_825_940 + n * 9_000, longitude_e7: -3_462_650, height_mm: 20_000 };
        if has_mission {
            assert_eq!(bench.feed(Input::Mission(&[point(0), point(1)])), Some(Reply::Accepted));
        }
        bench
    }

    fn second(&mut self) {
        for bench in &mut self.benches {
            bench.datagrams.clear();
            bench.second();
        }
        for (from, to) in [(0, 1), (1, 0)] {
            for datagram in self.benches[from].datagrams.clone() {
                let mut draft = datagram.draft().unwrap();
                let bytes = Signer::insecure().seal(&mut draft).to_vec();
                self.benches[to].receive_datagram(&bytes);
            }
        }
        let piloted_mm = self.piloted_mm;
        for (i, bench) in self.benches.iter_mut().enumerate() {
            if let Some(height_mm) = piloted_mm.filter(|_| i == 0) {
                (bench.armed, bench.height_mm, bench.mode) =
                    (height_mm > 0, height_mm, Mode::Loiter.number());
                continue;
            }
            let Some(order) = bench.agent.executor.order() else { continue };
            match order {
                Order::TakeOff { .. } | Order::FlyTo(_) if bench.mode != Mode::Guided.number() => {
                    if bench.asked_for_mode(Mode::Guided) {
                        bench.mode = Mode::Guided.number();
                    }
                    continue;
                }
                // The order to arm is sent before the motors turn.
                Order::TakeOff { .. } if !bench.armed => {
                    bench.armed = true;
                    continue;
                }
                Order::TakeOff { height_mm } => bench.height_mm = height_mm,
                Order::FlyTo(to) => {
                    (bench.height_mm, bench.at_e7) = (to.height_mm, (to.latitude_e7, to.longitude_e7));
                }
                Order::Hold | Order::Return | Order::Land => continue,
                Order::LoadRoute | Order::FlyRoute { .. } | Order::Resume | Order::ResumeHeld => {}
            }
            bench.agent.executor.clear();
            let mut out = Outputs::default();
            bench.agent.protocol_input(bench.now, wingbeat_protocol::Input::Done(order), &mut out);
        }
    }

    /// Sets up all, the master last, as soon as their parameters are read.
    fn set_up(&mut self) {
        for i in [1, 0] {
            let mut reply = None;
            for _ in 0..20 {
                self.second();
                reply = self.command(i, "s", Command::Setup);
                if reply == Some(Reply::Accepted) {
                    break;
                }
            }
            assert_eq!(reply, Some(Reply::Accepted), "{i}");
        }
    }

    fn state(&self, i: usize) -> StateId {
        self.benches[i].agent.status(self.benches[i].now).state
    }

    fn until(&mut self, i: usize, state: StateId) {
        for _ in 0..120 {
            if self.state(i) == state {
                return;
            }
            self.second();
        }
        panic!("{i}: {:?}, expected {state:?}: {:?}", self.state(i), self.benches[i].log);
    }

    fn command(&mut self, i: usize, id: &'static str, command: Command) -> Option<Reply> {
        self.benches[i].feed(Input::Operator { id, command })
    }

    fn says(&self, i: usize, what: &str) -> bool {
        self.benches[i].log.iter().any(|entry| entry.text.contains(what))
    }
}

fn muscop(me: u64) -> Coordination {
    let mut config = muscop::Config::new(VehicleId(me), VehicleId(1), 2);
    config.swarm.accepts_close = true;
    config.into()
}

fn follow_me(me: u64) -> Coordination {
    let mut config = follow_me::Config::new(VehicleId(me), VehicleId(1), 2);
    config.accepts_close = true;
    config.into()
}

#[test]
fn a_start_that_one_of_the_swarm_refuses_in_its_slot_ends_the_flight_of_all_after_60_s() {
    let mut flock = Flock::new([muscop(1), muscop(2)], None);
    flock.set_up();
    flock.until(0, StateId::SetupFinished);
    flock.until(1, StateId::SetupFinished);
    let battery =
        SYS_STATUS_DATA { voltage_battery: 10_400, battery_remaining: 29, ..SYS_STATUS_DATA::default() };
    flock.benches[1].receive(&MavMessage::SYS_STATUS(battery));
    let refused = flock.command(1, "a", Command::Start);
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Check { .. }))), "{refused:?}");
    assert!(flock.says(1, "start refused"), "{:?}", flock.benches[1].log);
    for _ in 0..55 {
        flock.second();
    }
    assert_eq!(flock.state(1), StateId::SetupFinished, "the operator may repeat it");
    for _ in 0..8 {
        flock.second();
    }
    assert_eq!([0, 1].map(|i| flock.state(i)), [StateId::Aborted; 2], "{:?}", flock.benches[1].log);
}

/// A follower in flight waits for its leader; *Start* came before.
#[test]
fn a_start_that_is_repeated_to_a_follower_that_waits_for_its_leader_ends_nothing() {
    let mut flock = Flock::new([follow_me(1), follow_me(2)], Some(0));
    flock.set_up();
    flock.until(1, StateId::SetupFinished);
    assert_eq!(flock.command(1, "a", Command::Start), Some(Reply::Accepted));
    flock.second();
    assert_eq!(flock.benches[1].agent.status(flock.benches[1].now).phase, Phase::Waiting);
    let refused = flock.command(1, "b", Command::Start);
    assert!(matches!(refused, Some(Reply::Refused(Rejection::Command(_)))), "{refused:?}");
    assert!(!flock.says(1, "start refused"), "{:?}", flock.benches[1].log);
}
