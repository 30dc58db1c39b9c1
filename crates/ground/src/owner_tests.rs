//! The owner: when consoles are told what, and which aircraft are watched closely.

use wingbeat_api::StateId;

use super::*;
use crate::fleet::tests::status;

const ID: &str = "00000000000000a1";

/// An owner of one aircraft, which nothing answers for, and a console.
fn owner(began: Instant) -> (Owner, broadcast::Receiver<Push>) {
    let checklist = checklist::Desk::open(None, "here:1".to_owned(), 1).expect("none");
    let about = About {
        console: "here:1".to_owned(),
        has_map: false,
        has_tiles: false,
        listener: Arc::default(),
        checklist: Arc::new(checklist),
    };
    let clients = client::Clients::new(None).expect("a client");
    let closely = watch::Sender::default();
    let following = Following { clients: clients.clone(), lease: None, desk: None, closely };
    let fleet = Fleet::new(["http://127.0.0.1:9".to_owned()], began);
    let mut owner = Owner::new(about, fleet, clients, following, mpsc::channel(8).0, began);
    let identity = Identity {
        id: ID.to_owned(),
        name: "one".to_owned(),
        version: "0".to_owned(),
        api_version: 1,
        protocol: "muscop".to_owned(),
    };
    owner.take(Message::Identified { index: 0, identity }, began);
    let console = owner.subscribe(began).expect("a picture").pushes;
    (owner, console)
}

fn reports(owner: &mut Owner, height_m: f64, commands: &[CommandProgress], now: Instant) {
    let mut status = status(ID, StateId::SetupFinished);
    status.navigation.as_mut().expect("it is somewhere").height_m = height_m;
    status.commands = commands.to_vec();
    owner.take(Message::Status { index: 0, status: Box::new(status) }, now);
}

/// For 10 s the aircraft reports before each tick, and ticks come up to 12 ms early or late.
#[tokio::test]
async fn a_console_is_told_every_200_ms_although_ticks_are_early_and_late() {
    let began = Instant::now();
    let (mut owner, mut console) = owner(began);
    let mut told_ms = Vec::new();
    for i in 1..=200_u64 {
        let late_ms = [0, 12, 3, 9, 5][i as usize % 5];
        let early_ms = [0, 0, 12, 7][i as usize % 4];
        let now = began + Duration::from_millis(50 * i + late_ms - early_ms);
        reports(&mut owner, i as f64, &[], now);
        owner.tick(now);
        let told = std::iter::from_fn(|| console.try_recv().ok());
        told_ms.extend(told.filter(|push| ["update", "picture"].contains(&push.event)).map(|_| i * 50));
    }
    assert_eq!(told_ms, (1..=50).map(|i| i * 200).collect::<Vec<_>>());
}

/// What a recovery came to is told with the next tick, other commands' effects with the next update.
#[tokio::test]
async fn the_effect_of_a_recovery_is_told_at_once() {
    for (command, told_ms) in [(Command::Land, 250), (Command::Engage, 400)] {
        let began = Instant::now();
        let (mut owner, mut console) = owner(began);
        let at = |ms| began + Duration::from_millis(ms);
        reports(&mut owner, 1.0, &[], began);
        let request = FleetCommandRequest { id: "c".to_owned(), command, vehicles: vec![ID.to_owned()] };
        owner.command(&request, "test".to_owned(), began).expect("it is possible");
        owner.tick(at(200));
        while console.try_recv().is_ok() {}
        let (id, stage, detail) = ("c".to_owned(), CommandStage::EffectSeen, String::new());
        reports(&mut owner, 1.0, &[CommandProgress { id, command, stage, detail }], at(220));
        let tick_ms = [250, 300, 350, 400].into_iter().find(|ms| {
            owner.tick(at(*ms));
            std::iter::from_fn(|| console.try_recv().ok()).any(|push| push.data.contains("effect_seen"))
        });
        assert_eq!(tick_ms, Some(told_ms), "{command}");
    }
}
