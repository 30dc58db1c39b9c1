//! The flight as an operator sets it up over HTTP: protocol, formation, distances, speed, manners, over what is configured. It
//! holds until it is set or cleared again, and is kept in a file of the state directory for the daemon after this one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IntoDeserializer as _, value::StrDeserializer},
};
use tokio::sync::oneshot;
use wingbeat_agent::Coordination;
use wingbeat_api::{
    ApiError, FlightProtocol, FlightSetup, FlightSetupChoice, FlightSetupKey, FlightSetupNow,
    FlightSetupSource, FlightSetupState,
};
use wingbeat_geo::FormationError;
use wingbeat_geo::formation::{Layout, Offsets};
use wingbeat_protocol::swarm::{self, Manner, shape};
use wingbeat_wire::VehicleId;

use crate::config::{Choice, Protocol, ProtocolKeys, Variant, copy_fence, vehicle};
use crate::state_directory;

/// The file's name in the state directory.
const FILE: &str = "flight-setup.json";
/// Of the file.
const VERSION: u32 = 1;
/// No set-up is longer.
const LEN_MAX: u64 = 16 << 10;
/// A shorter distance between aircraft is a mistake, and a longer one too, metres.
const DISTANCE_M: (f64, f64) = (1.0, 10_000.0);
/// Of a swarm.
const AIRCRAFT: (f64, f64) = (2.0, 128.0);
/// Along the legs, metres per second.
const SPEED_M_S: (f64, f64) = (0.5, 20.0);

/// What the API asks.
#[derive(Debug)]
pub(crate) enum Ask {
    State(oneshot::Sender<FlightSetupState>),
    Write {
        /// None for what is configured.
        setup: Option<Box<FlightSetup>>,
        lease: Option<String>,
        /// Whose connection it is, where there are keys.
        from: Option<VehicleId>,
        reply: oneshot::Sender<Result<FlightSetupState, ApiError>>,
    },
}

/// What is configured, and what an operator has set over that.
#[derive(Debug)]
pub(crate) struct FlightSetups {
    configured: Coordination,
    /// Every section of the configuration: another protocol than the configured one begins with its own.
    keys: Box<ProtocolKeys>,
    set: Option<FlightSetup>,
    problem: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    setup: FlightSetup,
}

impl FlightSetups {
    /// What is configured, without a set-up.
    pub(crate) fn new(configured: Coordination, keys: Box<ProtocolKeys>) -> Self {
        Self { configured, keys, set: None, problem: None }
    }

    /// With the set-up that an earlier daemon has kept. One that cannot be read, or flown, is said, and what is configured holds.
    pub(crate) fn open(self, state: Option<&Path>) -> Self {
        let Some(path) = state.map(|directory| directory.join(FILE)) else { return self };
        let read = read(&path).and_then(|kept| match kept {
            None => Ok(None),
            Some(setup) => self.coordination(Some(&setup)).map(|_| Some(setup)),
        });
        match read {
            Ok(set) => Self { set, ..self },
            Err(found) => {
                let problem = format!(
                    "{}: found {found}, expected a set-up of the flight, version {VERSION}; what is configured holds",
                    path.display()
                );
                Self { problem: Some(problem), ..self }
            }
        }
    }

    /// Why what was kept is not used.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What holds now.
    pub(crate) fn current(&self) -> Result<Coordination, String> {
        self.coordination(self.set.as_ref())
    }

    /// What holds with that set-up.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub(crate) fn coordination(&self, setup: Option<&FlightSetup>) -> Result<Coordination, String> {
        let Some(setup) = setup else { return Ok(self.configured.clone()) };
        check_keys(setup)?;
        let mut flight = self.begin(setup)?;
        overlay(setup, &mut flight)?;
        flight.check().map_err(|error| error.to_string())?;
        Ok(flight)
    }

    /// The configured numbers of the protocol.
    fn begin(&self, setup: &FlightSetup) -> Result<Coordination, String> {
        let variant = match &setup.variant {
            None => None,
            Some(name) => Some(named::<Variant>("variant", name, &VARIANTS)?),
        };
        let is_configured = protocol_of(&self.configured) == setup.protocol
            && setup.variant.as_deref().is_none_or(|variant| variant_of(&self.configured) == Some(variant));
        if is_configured {
            return Ok(self.configured.clone());
        }
        let mut keys = self.keys.clone();
        keys.muscop.master = setup.leader.clone().or(keys.muscop.master);
        keys.follow_me.leader = setup.leader.clone().or(keys.follow_me.leader);
        keys.muscop.aircraft = setup.aircraft.or(keys.muscop.aircraft);
        keys.follow_me.aircraft = setup.aircraft.or(keys.follow_me.aircraft);
        keys.mbcap.variant = variant.map(Choice).or(keys.mbcap.variant);
        if setup.formation.as_deref().is_some_and(|name| name != Layout::Custom.name()) {
            // Replaced below.
            (keys.muscop.formation, keys.muscop.formation_file) = (None, None);
            (keys.follow_me.formation, keys.follow_me.formation_file) = (None, None);
        }
        let protocol = match setup.protocol {
            FlightProtocol::Muscop => Protocol::Muscop,
            FlightProtocol::Mbcap => Protocol::Mbcap,
            FlightProtocol::FollowMe => Protocol::FollowMe,
            FlightProtocol::Mission => Protocol::Mission,
            FlightProtocol::Sweep => Protocol::Sweep,
        };
        let me = self.configured.me();
        let mut flight = keys.coordination(protocol, me).map_err(|error| error.to_string())?;
        copy_fence(&self.configured, &mut flight);
        Ok(flight)
    }

    /// Notes what the agent has taken.
    pub(crate) fn note(&mut self, set: Option<FlightSetup>) {
        (self.set, self.problem) = (set, None);
    }

    /// What holds, for the status.
    pub(crate) fn now(&self, flight: &Coordination) -> FlightSetupNow {
        let source = match self.set {
            Some(_) => FlightSetupSource::Operator,
            None => FlightSetupSource::Configuration,
        };
        FlightSetupNow { source, setup: of(flight) }
    }

    /// What holds, and what may be set.
    pub(crate) fn state(&self, flight: &Coordination) -> FlightSetupState {
        let FlightSetupNow { source, setup } = self.now(flight);
        FlightSetupState { source, setup, choices: self.choices(), problem: self.problem.clone() }
    }

    fn choices(&self) -> Vec<FlightSetupChoice> {
        let heights_m = self.configured.heights_m();
        let has_strip =
            protocol_of(&self.configured) == FlightProtocol::Sweep || self.keys.sweep.strip.is_some();
        let has_slots =
            |swarm: Option<&swarm::Config>| swarm.is_some_and(|swarm| swarm.layout == Layout::Custom);
        PROTOCOLS
            .into_iter()
            // Which strip is an aircraft's own stands in its configuration.
            .filter(|protocol| *protocol != FlightProtocol::Sweep || has_strip)
            .map(|protocol| {
                let is_custom =
                    protocol == protocol_of(&self.configured) && has_slots(swarm_of(&self.configured));
                let key = |key: &&str| key_of(key, protocol, heights_m, is_custom);
                FlightSetupChoice { protocol, keys: keys_of(protocol).iter().map(key).collect() }
            })
            .collect()
    }
}

const PROTOCOLS: [FlightProtocol; 5] = [
    FlightProtocol::Muscop,
    FlightProtocol::Mbcap,
    FlightProtocol::FollowMe,
    FlightProtocol::Mission,
    FlightProtocol::Sweep,
];
const VARIANTS: [&str; 2] = ["mbcap-e", "mbcap"];
const MANNERS: [&str; 2] = ["sequential", "simultaneous"];
const LANDINGS: [&str; 2] = ["in_place", "formation"];

/// The keys of a protocol, in the order in which they are shown.
fn keys_of(protocol: FlightProtocol) -> &'static [&'static str] {
    match protocol {
        FlightProtocol::Muscop => {
            &["leader", "aircraft", "formation", "distance_m", "landing_distance_m", "take_off", "landing"]
        }
        FlightProtocol::FollowMe => {
            &["leader", "aircraft", "formation", "distance_m", "landing_distance_m", "height_m", "landing"]
        }
        FlightProtocol::Mbcap => &["variant", "speed_m_s"],
        FlightProtocol::Mission | FlightProtocol::Sweep => &["speed_m_s"],
    }
}

fn key_of(key: &str, protocol: FlightProtocol, heights_m: (f64, f64), is_custom: bool) -> FlightSetupKey {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (values, range): (Vec<String>, _) = match key {
        "variant" => (names(&VARIANTS), None),
        "formation" => {
            let layouts = Layout::ALL.into_iter().filter(|layout| *layout != Layout::Custom || is_custom);
            (layouts.map(|layout| layout.to_string()).collect(), None)
        }
        "take_off" => (names(&MANNERS), None),
        "landing" if protocol == FlightProtocol::FollowMe => (names(&LANDINGS), None),
        "landing" => (names(&MANNERS), None),
        "aircraft" => (vec![], Some(AIRCRAFT)),
        "distance_m" | "landing_distance_m" => (vec![], Some(DISTANCE_M)),
        "height_m" => (vec![], Some(heights_m)),
        "speed_m_s" => (vec![], Some(SPEED_M_S)),
        _ => (vec![], None),
    };
    let (least, most) = range.unzip();
    FlightSetupKey { key: key.to_owned(), values, least, most }
}

/// Whether each key that is stated is one of the protocol's, and each number in its range.
fn check_keys(setup: &FlightSetup) -> Result<(), String> {
    let (keys, name) = (keys_of(setup.protocol), setup.protocol.name());
    if let Some((key, value)) = setup.stated().into_iter().find(|(key, _)| !keys.contains(key)) {
        let why = match key {
            // Where a swarm's speed comes from is often asked.
            "speed_m_s" if setup.protocol == FlightProtocol::Muscop => {
                ": MUSCOP flies as fast as the flight controller's WPNAV_SPEED"
            }
            _ => "",
        };
        return Err(format!("{key}: found {value}, expected none with protocol {name}{why}"));
    }
    let in_range = |key: &str, value: Option<f64>, (least, most): (f64, f64)| match value {
        Some(found) if !(least..=most).contains(&found) => {
            Err(format!("{key}: found {found}, expected {least} to {most}"))
        }
        Some(_) | None => Ok(()),
    };
    in_range("aircraft", setup.aircraft.map(f64::from), AIRCRAFT)?;
    in_range("distance_m", setup.distance_m, DISTANCE_M)?;
    in_range("landing_distance_m", setup.landing_distance_m, DISTANCE_M)?;
    in_range("speed_m_s", setup.speed_m_s, SPEED_M_S)
}

/// One of an enumeration's names.
fn named<T: DeserializeOwned>(key: &str, found: &str, names: &[&str]) -> Result<T, String> {
    let name: StrDeserializer<'_, serde::de::value::Error> = found.into_deserializer();
    T::deserialize(name).map_err(|_| format!("{key}: found {found:?}, expected {}", names.join(" or ")))
}

fn name_of<T: Serialize>(value: T) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

fn set<T>(target: &mut T, stated: Option<T>) {
    if let Some(stated) = stated {
        *target = stated;
    }
}

/// Overwrites what is stated.
fn overlay(setup: &FlightSetup, flight: &mut Coordination) -> Result<(), String> {
    match flight {
        Coordination::Mission(config) => set(&mut config.planned_speed_m_s, setup.speed_m_s),
        Coordination::Sweep(config) => set(&mut config.mission.planned_speed_m_s, setup.speed_m_s),
        Coordination::Mbcap(config) => set(&mut config.planned_speed_m_s, setup.speed_m_s),
        Coordination::Muscop(config) => {
            overlay_swarm(setup, &mut config.swarm)?;
            let manner = |key, name: &Option<String>| {
                name.as_deref().map(|name| named::<Manner>(key, name, &MANNERS)).transpose()
            };
            set(&mut config.swarm.take_off, manner("take_off", &setup.take_off)?);
            set(&mut config.swarm.landing, manner("landing", &setup.landing)?);
        }
        Coordination::FollowMe(config) => {
            overlay_swarm(setup, &mut config.swarm)?;
            set(&mut config.height_m, setup.height_m);
            let landing = setup.landing.as_deref();
            set(&mut config.landing, landing.map(|name| named("landing", name, &LANDINGS)).transpose()?);
        }
    }
    Ok(())
}

fn overlay_swarm(setup: &FlightSetup, swarm: &mut swarm::Config) -> Result<(), String> {
    if let Some(leader) = &setup.leader {
        swarm.master = vehicle("leader", leader).map_err(|error| error.to_string())?;
    }
    set(&mut swarm.aircraft, setup.aircraft.map(usize::from));
    set(&mut swarm.distance_m, setup.distance_m);
    set(&mut swarm.landing_distance_m, setup.landing_distance_m);
    if let Some(name) = &setup.formation {
        let layout: Layout = name.parse().map_err(|error| match error {
            FormationError::UnknownLayout => {
                format!("formation: found {name:?}, expected one of {}", Layout::names())
            }
            other => format!("formation: found {name:?}, expected {other}"),
        })?;
        if layout == Layout::Custom && swarm.layout != Layout::Custom {
            return Err("formation: found \"custom\", expected one that is named: its slots stand in the aircraft's configuration, which has none".into());
        }
        if layout != Layout::Custom {
            swarm.offsets = Offsets::new();
        }
        swarm.layout = layout;
    }
    let found = swarm.layout;
    match shape::configured(found, &swarm.offsets, swarm.aircraft, swarm.distance_m) {
        Ok(_) => Ok(()),
        Err(refused) => Err(format!("formation: found {found}, expected one that can be flown: {refused}")),
    }
}

fn protocol_of(flight: &Coordination) -> FlightProtocol {
    match flight {
        Coordination::Mission(_) => FlightProtocol::Mission,
        Coordination::Sweep(_) => FlightProtocol::Sweep,
        Coordination::Mbcap(_) => FlightProtocol::Mbcap,
        Coordination::Muscop(_) => FlightProtocol::Muscop,
        Coordination::FollowMe(_) => FlightProtocol::FollowMe,
    }
}

fn variant_of(flight: &Coordination) -> Option<&'static str> {
    match flight {
        Coordination::Mbcap(config) => Some(config.name),
        Coordination::Mission(_)
        | Coordination::Sweep(_)
        | Coordination::Muscop(_)
        | Coordination::FollowMe(_) => None,
    }
}

fn swarm_of(flight: &Coordination) -> Option<&swarm::Config> {
    match flight {
        Coordination::Muscop(config) => Some(&config.swarm),
        Coordination::FollowMe(config) => Some(&config.swarm),
        Coordination::Mission(_) | Coordination::Sweep(_) | Coordination::Mbcap(_) => None,
    }
}

/// Every key of the protocol with its value.
fn of(flight: &Coordination) -> FlightSetup {
    let mut setup = FlightSetup::new(protocol_of(flight));
    if let Some(swarm) = swarm_of(flight) {
        setup.leader = Some(swarm.master.to_string());
        setup.aircraft = u16::try_from(swarm.aircraft).ok();
        setup.formation = Some(swarm.layout.to_string());
        setup.distance_m = Some(swarm.distance_m);
        setup.landing_distance_m = Some(swarm.landing_distance_m);
    }
    match flight {
        Coordination::Mission(config) => setup.speed_m_s = Some(config.planned_speed_m_s),
        Coordination::Sweep(config) => setup.speed_m_s = Some(config.mission.planned_speed_m_s),
        Coordination::Mbcap(config) => {
            setup.variant = Some(config.name.to_owned());
            setup.speed_m_s = Some(config.planned_speed_m_s);
        }
        Coordination::Muscop(config) => {
            setup.take_off = name_of(config.swarm.take_off);
            setup.landing = name_of(config.swarm.landing);
        }
        Coordination::FollowMe(config) => {
            setup.height_m = Some(config.height_m);
            setup.landing = name_of(config.landing);
        }
    }
    setup
}

fn read(path: &Path) -> Result<Option<FlightSetup>, String> {
    let Some(bytes) = state_directory::read(path, LEN_MAX)? else { return Ok(None) };
    let Content { version, setup } = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if version != VERSION {
        return Err(format!("version {version}"));
    }
    Ok(Some(setup))
}

/// Where the set-up is kept, by one request at a time.
#[derive(Clone, Debug)]
pub(crate) struct Keeper(Option<PathBuf>);

impl Keeper {
    pub(crate) fn new(state: Option<&Path>) -> Self {
        Self(state.map(|directory| directory.join(FILE)))
    }

    /// Keeps it for the daemon after this one, or removes what was kept. Without a directory it keeps nothing.
    ///
    /// # Errors
    /// The system's, with the file.
    pub(crate) fn keep(&self, setup: Option<&FlightSetup>) -> Result<(), String> {
        let Some(path) = &self.0 else { return Ok(()) };
        let kept = match setup {
            None => match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.and_then(|()| wingbeat_keys::file::sync_folder(path)),
            },
            Some(setup) => serde_json::to_string(&Content { version: VERSION, setup: setup.clone() })
                .map_err(io::Error::other)
                .and_then(|text| wingbeat_keys::file::write(path, &text)),
        };
        kept.map_err(|error| format!("{}: found {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_protocol::{mission, muscop};

    const ME: VehicleId = VehicleId(0x11);
    const OTHER: &str = "0000000000000022";

    fn configured() -> FlightSetups {
        let mut config = muscop::Config::new(ME, ME, 3);
        (config.swarm.distance_m, config.swarm.height_most_m) = (20.0, 77.0);
        FlightSetups::new(config.into(), Box::default())
    }

    fn read_setup(text: &str) -> FlightSetup {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_stated_replaces_what_is_configured_and_the_rest_stays() {
        let setups = configured();
        let setup = read_setup(
            r#"{"protocol":"muscop","leader":"0000000000000022","aircraft":5,"formation":"circular","distance_m":30,
                "take_off":"simultaneous","landing":"sequential"}"#,
        );
        let flight = setups.coordination(Some(&setup)).unwrap_or_else(|why| panic!("{why}"));
        let Coordination::Muscop(config) = flight else { panic!("another protocol") };
        let swarm = config.swarm;
        assert_eq!((swarm.me, swarm.master, swarm.aircraft), (ME, VehicleId(0x22), 5));
        assert_eq!((swarm.distance_m, swarm.height_most_m, swarm.layout.name()), (30.0, 77.0, "circular"));
        assert_eq!((swarm.take_off, swarm.landing), (Manner::Simultaneous, Manner::Sequential));
        let nothing = FlightSetup::new(FlightProtocol::Muscop);
        assert_eq!(setups.coordination(Some(&nothing)), setups.coordination(None));
        assert_eq!(setups.coordination(None).unwrap(), setups.configured);
    }

    #[test]
    fn what_is_reported_can_be_set_and_is_the_same_then() {
        for text in [
            r#"{"protocol":"mission","speed_m_s":4}"#,
            r#"{"protocol":"mbcap","variant":"mbcap","speed_m_s":6}"#,
            r#"{"protocol":"mbcap"}"#,
            r#"{"protocol":"follow_me","leader":"0000000000000022","aircraft":2,"distance_m":70,"landing":"formation","height_m":25}"#,
            r#"{"protocol":"muscop","formation":"linear"}"#,
        ] {
            let setups = configured();
            let flight =
                setups.coordination(Some(&read_setup(text))).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(flight.heights_m().1, 77.0, "{text}: the fence is the configured one");
            let reported = of(&flight);
            assert_eq!(setups.coordination(Some(&reported)), Ok(flight), "{text}");
            // And every key of it is among the choices, with a value that is.
            let choice = setups.choices().into_iter().find(|one| one.protocol == reported.protocol).unwrap();
            for (key, value) in reported.stated() {
                let key = choice.keys.iter().find(|one| one.key == key).unwrap();
                assert!(key.values.is_empty() || key.values.contains(&value), "{key:?}: {value}");
            }
        }
    }

    #[test]
    fn what_cannot_be_flown_names_the_key_and_what_was_found_and_expected() {
        let setups = configured();
        for (text, words) in [
            (
                r#"{"protocol":"muscop","speed_m_s":5}"#,
                &["speed_m_s: found 5, expected none", "WPNAV_SPEED"][..],
            ),
            (
                r#"{"protocol":"mission","formation":"wedge"}"#,
                &["formation: found wedge, expected none with protocol mission"],
            ),
            (
                r#"{"protocol":"muscop","formation":"vee"}"#,
                &["formation: found \"vee\", expected one of linear"],
            ),
            (r#"{"protocol":"muscop","formation":"custom"}"#, &["formation: found \"custom\", expected"]),
            (r#"{"protocol":"muscop","distance_m":0.2}"#, &["distance_m: found 0.2, expected 1 to 10000"]),
            (r#"{"protocol":"muscop","aircraft":1}"#, &["aircraft: found 1, expected 2 to 128"]),
            (
                r#"{"protocol":"muscop","leader":"22"}"#,
                &["leader: found \"22\", expected 16 hexadecimal digits"],
            ),
            (
                r#"{"protocol":"muscop","take_off":"slow"}"#,
                &["take_off: found \"slow\", expected sequential or simultaneous"],
            ),
            (r#"{"protocol":"mbcap","variant":"x"}"#, &["variant: found \"x\", expected mbcap-e or mbcap"]),
            (r#"{"protocol":"mbcap","speed_m_s":21}"#, &["speed_m_s: found 21, expected 0.5 to 20"]),
            (r#"{"protocol":"follow_me"}"#, &["follow_me.leader: found nothing, expected the id"]),
            (r#"{"protocol":"sweep"}"#, &["sweep.aircraft: found nothing"]),
        ] {
            let why = setups.coordination(Some(&read_setup(text))).unwrap_err();
            for word in words {
                assert!(why.contains(word), "{text}: {why}");
            }
        }
        let close = format!(r#"{{"protocol":"follow_me","leader":"{OTHER}","aircraft":2,"distance_m":20}}"#);
        let why = setups.coordination(Some(&read_setup(&close))).unwrap_err();
        assert!(why.contains("follow_me.distance_m: found 20, expected at least"), "{why}");
    }

    #[test]
    fn a_set_up_is_kept_over_a_restart_and_what_is_no_set_up_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = (Some(directory.path()), directory.path().join(FILE));
        let setup = read_setup(r#"{"protocol":"mission","speed_m_s":4}"#);
        let keeper = Keeper::new(state);
        keeper.keep(Some(&setup)).unwrap();
        let opened = configured().open(state);
        assert_eq!((opened.problem(), opened.set.as_ref()), (None, Some(&setup)));
        let mut expected = mission::Config::new(ME);
        (expected.planned_speed_m_s, expected.fence.height_most_m) = (4.0, 77.0);
        (expected.fence.height_least_m, expected.fence.distance_most_m) = (2.0, 5_000.0);
        assert_eq!(opened.current(), Ok(expected.into()));
        let whole = fs::read_to_string(&path).unwrap();
        for (content, says) in [
            (whole[..whole.len() / 2].to_owned(), "EOF"),
            (whole.replace("\"version\":1", "\"version\":2"), "version 2"),
            (
                whole.replace("\"speed_m_s\":4.0", "\"speed_m_s\":99"),
                "speed_m_s: found 99, expected 0.5 to 20",
            ),
            (whole.replace("speed_m_s", "tempo"), "unknown field `tempo`"),
            (" ".repeat(LEN_MAX as usize + 1), "more than"),
        ] {
            fs::write(&path, content).unwrap();
            let opened = configured().open(state);
            assert_eq!(opened.current(), configured().current());
            let problem = opened.problem().unwrap();
            assert!(problem.contains(says) && problem.contains(FILE), "{problem}");
        }
        keeper.keep(None).unwrap();
        assert!(!path.exists() && keeper.keep(None).is_ok());
        assert_eq!(configured().open(state).problem(), None);
        fs::create_dir(&path).unwrap();
        assert!(keeper.keep(Some(&setup)).unwrap_err().contains(FILE));
    }
}
