//! Experiments as TOML files: what is flown, how often, and which table it makes.

pub mod bluesky;
pub mod conditions;
pub mod csma;
pub mod follow;
pub mod ns3;
pub mod own;
pub mod saturation;
pub mod script;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;
use wingbeat_api::{MissionFileOptions, ReadMission};
use wingbeat_cosim::copter::STRETCH;
use wingbeat_geo::Duration;
use wingbeat_geo::formation::{Layout, Offsets};
use wingbeat_ground::mission_file::limits;
use wingbeat_sim::channel::{Draw, Model};
use wingbeat_sim::keys::Signatures;
use wingbeat_sim::medium::csma::Config;
use wingbeat_sim::motion::Profile;
use wingbeat_wire::Point;

use crate::axes::{self, Settings};
use crate::campaign::accept::Accept;
use crate::guidance::Guidance;
use crate::hosts::Hosts;
use crate::media::Broadcasts;
use crate::scenario::{Scenario, Task, Variant, parse_mission, read_mission, staircase};
use crate::sitl::process::profile;
use crate::trouble::Trouble;
use conditions::Conditions;
use csma::Csma;
use follow::Follow;
use ns3::Ns3;
use own::Own;
use saturation::Saturation;
use script::PlannedScript;

/// What a program's path follows in the key `autopilot`.
pub const ARDUCOPTER: &str = "arducopter:";

/// What the name of a routing protocol follows in the key `channel.model`.
const NS3: &str = "ns3:";

/// An experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Short name.
    pub name: String,
    /// Title of the result table.
    pub title: String,
    /// Which table its flights make.
    pub table: Table,
    /// Flights per row, each with its own seed.
    pub repeat: u32,
    /// Virtual time after which a flight has failed, seconds; how long radios without aircraft send.
    pub time_limit_s: u32,
    /// The version of ArduCopter that is simulated, 3.5.7 or 4.6.2; without it 3.5.7, as published. Or `arducopter:PATH`,
    /// relative to the plan: that program flies, in virtual time too.
    pub autopilot: Option<String>,
    /// What moves the aircraft of that program, instead of our physics: `proxy:HOST:PORT`, a simulator that speaks ArduPilot's JSON
    /// interface, for each further aircraft one ten ports higher.
    pub physics: Option<String>,
    /// How often bytes cross the serial port of such a program, and messages between several computers, milliseconds: 10, as often as
    /// ArduCopter reads its ports, to 100, in tens.
    pub step_ms: Option<u16>,
    /// The computers that fly it, where they are several.
    pub hosts: Option<Hosts>,
    /// The swarm.
    pub swarm: Option<Swarm>,
    /// The swarm's mission or missions.
    pub mission: Option<Mission>,
    /// Aircraft on missions of their own, instead of a swarm.
    pub own: Option<Own>,
    /// A formation behind a leader that a pilot flies, instead of a swarm.
    pub follow: Option<Follow>,
    /// Radios without aircraft, instead of a swarm.
    pub saturation: Option<Saturation>,
    /// A point that nodes on the ground guide, instead of a swarm.
    pub guidance: Option<Guidance>,
    /// The radio channel.
    pub channel: Channel,
    /// The networks through which what is transmitted in one flight is put, instead of `channel.model`.
    #[serde(default)]
    pub media: Vec<Network>,
    /// What each aircraft of such a flight broadcasts.
    pub broadcasts: Option<Broadcasts>,
    /// What surrounds every flight.
    #[serde(default)]
    pub conditions: Conditions,
    /// What goes wrong in every flight.
    #[serde(default)]
    pub fault: Vec<Trouble>,
    /// Scripts that fly aircraft on missions of their own, in virtual time.
    #[serde(default)]
    pub script: Vec<PlannedScript>,
    /// The swarm in other ways too.
    #[serde(default)]
    pub vary: Vary,
    /// Ranges that its figures must lie in.
    #[serde(default)]
    pub accept: Vec<Accept>,
}

/// The tables that a plan can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Table {
    /// One row per mission: time, offsets, separation, datagrams.
    Flights,
    /// One row per flight and value of the axes: time, stops, separation, datagrams.
    Axes,
    /// Thesis Table 6.2: the swarm's flight time against one aircraft alone.
    MuscopOverhead,
    /// One row per flight and network: datagrams, delays, flows.
    Media,
    /// DUSC's Figure 10: how far from its path a point is guided, by the distance between nodes.
    Guidance,
    /// DUSC's Figures 5b and 7: what flows bring by time, under each method of coupling ns-3 or each routing.
    Flows,
    /// Thesis Tables 5.3 and 5.4: what MBCAP costs two aircraft that meet.
    MbcapPairs,
    /// Thesis Tables 5.6 and 5.7: MBCAP in a crowd.
    MbcapCrowd,
    /// Thesis Tables 6.1 and 6.3: how well a swarm keeps together.
    MuscopOffsets,
    /// Thesis Figure 6.11: the same against the distance between aircraft.
    MuscopDistance,
    /// Thesis Figure 6.12: datagrams lost against distance.
    MuscopLoss,
    /// Thesis Figure 6.13: flight time against the number of aircraft.
    MuscopScale,
    /// Thesis Tables 7.1 and 7.2 and Figures 7.8 to 7.15: how well a formation follows.
    Following,
    /// ArduSim paper, Table 3: datagrams that wait and collide under load, next to ns-3.
    ChannelSaturation,
}

/// The swarm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swarm {
    /// Number of aircraft.
    pub aircraft: usize,
    /// Its name, as the aircraft's configuration has it.
    pub formation: String,
    /// The places of a custom one: a file, relative to the plan.
    pub formation_file: Option<String>,
    /// Distance between slots, metres.
    pub distance_m: f64,
    /// Distance between slots of the landing formation, metres; as published where none is stated.
    pub landing_distance_m: Option<f64>,
    /// Speed along the legs, metres per second.
    pub speed_m_s: f64,
    /// Standard deviation of the wandering position error, metres.
    #[serde(default)]
    pub gps_noise_m: f64,
    /// Difference between the heights of the highest and the lowest home, metres; which way it rises is drawn.
    #[serde(default)]
    pub slope_m: f64,
    /// Orders wait for the flight controller's next frame, as in the reference implementation.
    #[serde(default)]
    pub orders_wait_for_telemetry: bool,
    /// How far each flight controller's clock walks from the others' in one second, standard deviation, milliseconds.
    #[serde(default)]
    pub clock_walk_ms: f64,
    /// Whether the formation is flown however close it is for its speed.
    #[serde(default)]
    pub accepts_close: bool,
    /// How the aircraft stand on the ground, 10 m apart: `linear` unless it is another formation.
    pub ground: Option<String>,
}

/// The flights under each of these values; an empty list keeps the plan's other value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Vary {
    /// Instead of `channel.model`.
    #[serde(default)]
    pub channel: Vec<String>,
    /// Instead of `channel.ns3.method`, where the medium is ns-3.
    #[serde(default)]
    pub method: Vec<String>,
    /// Instead of `swarm.formation`.
    #[serde(default)]
    pub formation: Vec<String>,
    /// Instead of `swarm.aircraft` and `swarm.distance_m`.
    #[serde(default)]
    pub size: Vec<Size>,
    /// Keys of the aircraft's configuration, each with a list of values; see [`axes`].
    #[serde(flatten)]
    pub axes: toml::Table,
}

/// How large a swarm is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Number of aircraft.
    pub aircraft: usize,
    /// Distance between slots, metres.
    pub distance_m: f64,
}

/// The mission: a file, or the published staircases.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mission {
    /// A mission file, relative to the plan.
    pub file: Option<String>,
    /// What the file holds, where the plan carries it: then the file is a name only.
    pub text: Option<String>,
    /// How the file is read, and what of it may be left out.
    #[serde(default)]
    pub options: MissionFileOptions,
    /// The published staircases.
    pub staircase: Option<Staircase>,
}

/// Thesis section 6.2.1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Staircase {
    /// One mission for each of these numbers of waypoints.
    pub waypoints: Vec<usize>,
    /// Length of each mission, metres.
    pub length_m: f64,
    /// Height above home, metres.
    pub height_m: f64,
}

/// The radio channel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// `unrestricted`, `range:METRES`, `802.11a`, `table`, `csma`, `ns3` or `ns3:ROUTING`.
    pub model: String,
    /// Where a model is `table`: its file, relative to the plan, as `wingbeat linktest fit` writes it.
    pub table: Option<String>,
    /// `packet` or `second`: how often the loss on a link is drawn, or its fading.
    pub draw: String,
    /// Where a model is `csma`: what differs from its defaults.
    #[serde(default)]
    pub csma: Csma,
    /// Where a model is `ns3`: what differs from its defaults.
    #[serde(default)]
    pub ns3: Ns3,
    /// What proves the senders: `ed25519` unless it is `stand-in`, which is as long and cheaper.
    pub signatures: Option<String>,
}

/// One of the networks of a flight.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// For the table; `model` unless stated.
    pub name: Option<String>,
    /// As `channel.model`.
    pub model: String,
    /// As `channel.table`.
    pub table: Option<String>,
    /// As `channel.csma`, instead of that.
    #[serde(default)]
    pub csma: Csma,
    /// As `channel.ns3`, instead of that.
    #[serde(default)]
    pub ns3: Ns3,
}

/// What carries the datagrams of a flight.
#[derive(Clone)]
struct Carrier {
    channel: Model,
    csma: Option<Config>,
    ns3: Option<wingbeat_cosim::ns3::Config>,
    /// The network's name, where it is one of several.
    network: Option<String>,
}

impl Channel {
    /// The carrier by a name of its models.
    fn carrier(&self, name: &str, method: Option<&str>, draw: Draw, folder: &Path) -> Result<Carrier> {
        let mut carrier = Carrier { channel: Model::Unrestricted, csma: None, ns3: None, network: None };
        match name {
            "csma" => carrier.csma = Some(self.csma.config(draw)?),
            "ns3" => carrier.ns3 = Some(self.ns3.config(None, method)?),
            _ if name.starts_with(NS3) => {
                carrier.ns3 = Some(self.ns3.config(name.strip_prefix(NS3), method)?);
            }
            "table" => carrier.channel = self.measured(folder)?,
            _ => {
                carrier.channel = name
                    .parse()
                    .map_err(|e| anyhow!("channel.model: {e}, table, csma, ns3 or ns3:ROUTING"))?;
            }
        }
        Ok(carrier)
    }

    /// The table in its file.
    fn measured(&self, folder: &Path) -> Result<Model> {
        let file =
            self.table.as_ref().context("channel.table: found none, expected the file of the table")?;
        let path = folder.join(file);
        let here = || format!("channel.table: {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(here)?;
        let table: wingbeat_linktest::Table = text.parse().map_err(anyhow::Error::msg).with_context(here)?;
        Ok(Model::Table(table.rows().into()))
    }
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// Names the file, the line, what was found and what was expected.
    pub fn read(path: &Path) -> Result<Self> {
        let place = || format!("plan {}", path.display());
        // What is no file may have no end.
        ensure!(std::fs::metadata(path).with_context(place)?.is_file(), "{}: found no file", place());
        let text = std::fs::read_to_string(path).with_context(place)?;
        Self::parse(&text, path.parent().unwrap_or(Path::new("."))).with_context(place)
    }

    /// The same for text that did not come from a disk; the files that it names are relative to `folder`.
    ///
    /// # Errors
    /// As [`Plan::read`].
    pub fn parse(text: &str, folder: &Path) -> Result<Self> {
        // The library's message shows the line with a caret and the keys that it expects.
        let plan: Self = toml::from_str(text).map_err(|e| anyhow!("{}", e.to_string().trim_end()))?;
        ensure!((1..=1000).contains(&plan.repeat), "repeat: found {}, expected 1 to 1000", plan.repeat);
        ensure!(
            (1..=86_400).contains(&plan.time_limit_s),
            "time_limit_s: found {}, expected 1 to 86400",
            plan.time_limit_s
        );
        let scenarios = plan.scenarios(folder, 0)?;
        check_axes(&scenarios)?;
        plan.accept.iter().try_for_each(Accept::check)?;
        scenarios.iter().try_for_each(Scenario::check)?;
        Ok(plan)
    }

    /// Flies a part of the plan only: so many aircraft, one variant of the protocol.
    ///
    /// # Errors
    /// The plan has no such part.
    pub fn keep(&mut self, aircraft: Option<usize>, variant: Option<Variant>) -> Result<()> {
        if self.guidance.is_some() {
            ensure!(
                aircraft.is_none() && variant.is_none(),
                "aircraft, variant: found one, expected none: nodes guide one point"
            );
            return Ok(());
        }
        if let Some(saturation) = &mut self.saturation {
            ensure!(variant.is_none(), "variant: found one, expected none: the plan flies no aircraft");
            return saturation.keep(aircraft);
        }
        if let Some(follow) = &mut self.follow {
            if let Some(variant) = variant {
                bail!("variant: found {}, expected none: the plan follows a pilot", variant.name());
            }
            return follow.keep(aircraft);
        }
        match (&mut self.own, &mut self.swarm) {
            (Some(own), _) => own.keep(aircraft, variant),
            (None, Some(swarm)) => {
                if let Some(variant) = variant {
                    bail!("variant: found {}, expected none: the plan flies a swarm", variant.name());
                }
                let Some(aircraft) = aircraft else { return Ok(()) };
                swarm.aircraft = aircraft;
                let size = &mut self.vary.size;
                let found = size.len();
                size.retain(|s| s.aircraft == aircraft);
                ensure!(
                    found == 0 || !size.is_empty(),
                    "aircraft: found {aircraft}, expected a size that the plan varies"
                );
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Another medium than the plan's, by the names of `channel.model`.
    ///
    /// # Errors
    /// The plan puts one flight through several.
    pub fn set_medium(&mut self, model: &str) -> Result<()> {
        ensure!(
            self.media.is_empty(),
            "medium: found {model} beside the plan's [[media]], expected a plan with one medium"
        );
        model.clone_into(&mut self.channel.model);
        self.vary.channel.clear();
        Ok(())
    }

    /// Another method than the plan's, by the names of `channel.ns3.method`.
    ///
    /// # Errors
    /// The medium is not ns-3.
    pub fn set_method(&mut self, method: &str) -> Result<()> {
        let model = &self.channel.model;
        ensure!(
            model == "ns3" || model.starts_with(NS3),
            "method: found the medium {model}, expected ns3: the others have no method"
        );
        self.channel.ns3.method = Some(method.to_owned());
        self.vary.method.clear();
        Ok(())
    }

    /// Another pilot for the leader: `published`, `drawn:SECONDS` or `trace:FILE`.
    ///
    /// # Errors
    /// The plan has no leader.
    pub fn set_pilot(&mut self, pilot: &str) -> Result<()> {
        follow::set_pilot(self.follow.as_mut(), pilot)
    }

    /// The swarm's size as text, with a comma; rows of other plans have their own.
    pub fn size(&self) -> String {
        self.swarm.as_ref().map_or_else(String::new, |swarm| format!("{} aircraft, ", swarm.aircraft))
    }

    /// Every flight of the plan with its seed, one list per row of the table. The same repeat has the
    /// same seed in every row: the same missions and the same random numbers.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn flights(&self, folder: &Path, seed: u64) -> Result<Vec<Vec<(Scenario, u64)>>> {
        let mut rows: Vec<Vec<(Scenario, u64)>> = Vec::new();
        for repeat in 0..u64::from(self.repeat) {
            let flight_seed = seed.wrapping_mul(1_000).wrapping_add(repeat);
            for (row, scenario) in self.scenarios(folder, flight_seed)?.into_iter().enumerate() {
                scenario.check()?;
                if rows.len() == row {
                    rows.push(Vec::new());
                }
                rows[row].push((scenario, flight_seed));
            }
        }
        let found = rows.iter().map(Vec::len).sum::<usize>();
        ensure!(
            self.physics.is_none() || found == 1,
            "physics: found a plan of {found} flights, expected one (repeat, --variant): a simulator is not set back between them"
        );
        Ok(rows)
    }

    /// What is measured or kept on one computer is refused where the plan has several.
    ///
    /// # Errors
    /// It has.
    pub fn on_one_computer(&self, what: &str) -> Result<()> {
        let count = self.hosts.map_or(1, |hosts| hosts.count);
        ensure!(count == 1, "{what}: found a plan for {count} computers (hosts), expected one without");
        Ok(())
    }

    /// The flights of the plan for one seed, one per row. Random missions are drawn from the seed.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn scenarios(&self, folder: &Path, seed: u64) -> Result<Vec<Scenario>> {
        ensure!(
            self.saturation.is_some() == (self.table == Table::ChannelSaturation),
            "expected saturation with table = \"channel-saturation\", and with no other"
        );
        if let Some(saturation) = &self.saturation {
            ensure!(
                self.swarm.is_none() && self.mission.is_none() && self.own.is_none() && self.follow.is_none(),
                "saturation: found aircraft too, expected none"
            );
            ensure!(
                self.autopilot.is_none() && self.physics.is_none(),
                "autopilot, physics: found one, expected none: the plan flies no aircraft"
            );
            ensure!(
                self.fault.is_empty() && self.script.is_empty() && self.conditions == Conditions::default(),
                "conditions, fault, script: found some, expected none: the plan flies no aircraft"
            );
            saturation.loads()?;
            self.csma()?;
            return Ok(Vec::new());
        }
        ensure!(
            self.guidance.is_some() == (self.table == Table::Guidance),
            "expected guidance with table = \"guidance\", and with no other"
        );
        if let Some(guidance) = &self.guidance {
            ensure!(
                self.swarm.is_none() && self.mission.is_none() && self.own.is_none() && self.follow.is_none(),
                "guidance: found aircraft too, expected none"
            );
            ensure!(
                self.autopilot.is_none()
                    && self.physics.is_none()
                    && self.fault.is_empty()
                    && self.script.is_empty()
                    && self.conditions == Conditions::default(),
                "autopilot, physics, conditions, fault, script: found some, expected none: a point is guided"
            );
            self.air_of_guidance()?;
            guidance.check()?;
            return Ok(Vec::new());
        }
        let draw = self.draw()?;
        let signatures = self.signatures()?;
        let arducopter = self.arducopter(folder);
        let profile = match &arducopter {
            None => self.profile()?,
            Some(path) => profile_of(path)?,
        };
        let physics = self.physics.as_deref().map(str::parse).transpose()?;
        if let Some(found) = self.step_ms {
            ensure!(
                (10..=100).contains(&found) && found.is_multiple_of(10),
                "step_ms: found {found}, expected 10 to 100, in tens: ArduCopter reads its ports each 10 ms"
            );
            ensure!(
                arducopter.is_some(),
                "step_ms: found {found}, expected none: a simulated flight controller has steps of its own (autopilot = \"arducopter:PATH\")"
            );
        }
        let step = self.step_ms.map_or(STRETCH, |ms| Duration::from_millis(ms.into()));
        let models: &[String] = match &*self.vary.channel {
            [] => std::slice::from_ref(&self.channel.model),
            varied => varied,
        };
        ensure!(
            self.broadcasts.is_none() || !self.media.is_empty(),
            "broadcasts: found some and no media, expected media: agents transmit what they need themselves"
        );
        self.broadcasts.iter().try_for_each(Broadcasts::check)?;
        ensure!(
            self.media.is_empty() || self.hosts.is_none(),
            "media: found some in a plan for several computers (hosts), expected one medium in the flight"
        );
        let settings = axes::combinations(&self.vary.axes)?;
        let methods: Vec<Option<&str>> = match &*self.vary.method {
            [] => vec![None],
            varied => varied.iter().map(|method| Some(&**method)).collect(),
        };
        ensure!(
            self.vary.method.is_empty() || models.iter().all(|name| name == "ns3" || name.starts_with(NS3)),
            "vary.method: found another medium too, expected ns3: the others have no method"
        );
        let carriers: Vec<Carrier> = if self.media.is_empty() {
            let varied = models.iter().flat_map(|name| methods.iter().map(move |method| (name, *method)));
            varied
                .map(|(name, method)| self.channel.carrier(name, method, draw, folder))
                .collect::<Result<_>>()?
        } else {
            self.networks(draw, folder)?
        };
        let mut all = Vec::new();
        for Carrier { channel, csma, ns3, network } in carriers {
            let scenarios = match (&self.swarm, &self.mission, &self.own, &self.follow) {
                (Some(swarm), Some(mission), None, None) => swarm.varied(&self.vary, mission, folder),
                (None, None, Some(own), None) => own.scenarios(folder, seed),
                (None, None, None, Some(follow)) => follow.scenarios(),
                _ => Err(anyhow!("expected either swarm and mission, or own, or follow, or saturation")),
            };
            for scenario in scenarios? {
                let mut scenario = Scenario {
                    channel: channel.clone(),
                    network: network.clone(),
                    broadcasts: self.broadcasts,
                    draw,
                    csma: csma.clone(),
                    ns3: ns3.clone(),
                    signatures,
                    profile,
                    trouble: self.fault.clone(),
                    arducopter: arducopter.clone(),
                    physics: physics.clone(),
                    step,
                    ..scenario
                };
                self.conditions.surround(&mut scenario, folder)?;
                script::give(&self.script, &mut scenario, folder)?;
                all.extend(settings.iter().map(|s| s.clone().fly(scenario.clone())));
            }
        }
        Ok(all)
    }

    /// What carries the datagrams of one flight after another.
    fn networks(&self, draw: Draw, folder: &Path) -> Result<Vec<Carrier>> {
        ensure!(
            self.vary.channel.is_empty() && self.vary.method.is_empty(),
            "media: found vary.channel or vary.method too, expected one of them"
        );
        let mut all: Vec<Carrier> = Vec::new();
        for (index, Network { name, model, table, csma, ns3 }) in self.media.iter().enumerate() {
            let place = || format!("media {}", index + 1);
            let (table, csma, ns3) = (table.clone(), csma.clone(), ns3.clone());
            let channel = Channel { model: model.clone(), table, csma, ns3, ..self.channel.clone() };
            let carrier = channel.carrier(model, None, draw, folder).with_context(place)?;
            let network = name.as_ref().unwrap_or(model).clone();
            ensure!(
                all.iter().all(|other| other.network.as_ref() != Some(&network)),
                "media: found {network} twice, expected a name for each"
            );
            all.push(Carrier { network: Some(network), ..carrier });
        }
        Ok(all)
    }

    /// The ArduCopter program that flies, if one does; a relative path begins at `folder`.
    pub fn arducopter(&self, folder: &Path) -> Option<PathBuf> {
        let path = self.autopilot.as_deref()?.strip_prefix(ARDUCOPTER)?;
        Some(folder.join(path))
    }

    /// What flies, in a line for people; `None` where it is what flies usually.
    pub fn flown_by(&self) -> Option<String> {
        let autopilot = self.autopilot.as_deref()?;
        Some(match autopilot.strip_prefix(ARDUCOPTER) {
            Some(path) => format!("{path}, in lock step"),
            None => format!("ArduCopter {autopilot}, simulated"),
        })
    }

    /// The autopilot that is simulated.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    fn profile(&self) -> Result<Profile> {
        let version = self.autopilot.as_deref();
        version.map_or(Ok(Profile::Copter357), |v| {
            v.parse().map_err(|e| anyhow!("autopilot: {e}, or arducopter:PATH"))
        })
    }

    fn draw(&self) -> Result<Draw> {
        match self.channel.draw.as_str() {
            "packet" => Ok(Draw::PerPacket),
            "second" => Ok(Draw::PerSecond),
            other => Err(anyhow!("channel.draw: found '{other}', expected packet or second")),
        }
    }

    /// The medium of radios without aircraft.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn csma(&self) -> Result<Config> {
        let model = &self.channel.model;
        ensure!(model == "csma", "channel.model: found '{model}', expected csma: the others have no load");
        self.channel.csma.config(self.draw()?)
    }

    /// The medium between nodes on the ground and the point that they guide.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn air_of_guidance(&self) -> Result<wingbeat_cosim::ns3::Config> {
        let (model, ns3) = (&self.channel.model, &self.channel.ns3);
        ensure!(model == "ns3", "channel.model: found '{model}', expected ns3: it guides event by event");
        ensure!(
            ns3.flow.is_empty() && ns3.ground_east_north_up_m.is_empty() && ns3.method.is_none(),
            "channel.ns3: found flow, ground_east_north_up_m or method, expected none of them with guidance"
        );
        ns3.config(None, None)
    }

    /// What proves the senders of datagrams.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn signatures(&self) -> Result<Signatures> {
        let name = self.channel.signatures.as_deref();
        name.map_or(Ok(Signatures::default()), |name| name.parse().map_err(|e| anyhow!("channel.{e}")))
    }

    /// What its mission files state and its flights do not fly, or fly otherwise: each line once.
    ///
    /// # Errors
    /// As [`Plan::flights`].
    pub fn notes(&self, folder: &Path) -> Result<Vec<String>> {
        let mut notes: Vec<String> = Vec::new();
        for scenario in self.scenarios(folder, 0)? {
            for note in scenario.notes()? {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        Ok(notes)
    }

    /// The time limit of one flight.
    pub fn time_limit(&self) -> Duration {
        Duration::from_secs(self.time_limit_s.into())
    }
}

/// The profile that is most like a program.
pub(crate) fn profile_of(path: &Path) -> Result<Profile> {
    profile(path).context("autopilot")?.with_context(|| {
        format!("autopilot: found no version in {}, expected an ArduCopter SITL program", path.display())
    })
}

/// An axis that changes nothing would make a table of equal rows.
fn check_axes(scenarios: &[Scenario]) -> Result<()> {
    let flown: Vec<_> = scenarios.iter().map(|s| (&s.settings, s.agent_config(0).coordination)).collect();
    for setting in scenarios.first().map_or(&[][..], |s| &s.settings.named) {
        let key = &setting.key;
        let concerned = flown.iter().any(|(_, coordination)| Settings::concerns(key, coordination));
        ensure!(concerned, "vary.{key}: found no aircraft in the plan that has this key, expected one");
    }
    for (settings, coordination) in &flown {
        if let Some(key) = settings.key_of_other_variant(coordination) {
            bail!("vary.{key}: found a variant in own.variants that does not have it, expected another");
        }
    }
    Ok(())
}

/// Name and waypoints of a mission, and what its file states, if it has one.
type Waypoints = (String, Vec<Point>, Vec<ReadMission>);

impl Mission {
    fn missions(&self, folder: &Path) -> Result<Vec<Waypoints>> {
        let stairs = match (&self.file, &self.staircase) {
            (Some(file), None) => {
                let limits = limits(&self.options).map_err(|why| anyhow!("mission.{why}"))?;
                let mut mission = match &self.text {
                    Some(text) => parse_mission(file, text, &limits)?,
                    None => read_mission(&folder.join(file), &limits)?,
                };
                mission.stated.mission.leave_out.clone_from(&self.options.leave_out);
                return Ok(vec![(mission.name, mission.points, vec![mission.stated])]);
            }
            (None, Some(stairs)) if self.text.is_none() => stairs,
            _ => bail!("mission: expected either file or staircase"),
        };
        ensure!(
            !stairs.waypoints.is_empty(),
            "mission.staircase.waypoints: found none, expected one or more"
        );
        // No more are made than a plan carries; too few are the protocol's to refuse.
        let most = wingbeat_wire::WAYPOINTS_MAX;
        if let Some(n) = stairs.waypoints.iter().find(|n| **n > most) {
            bail!("mission.staircase.waypoints: found {n}, expected {most} at most");
        }
        let (length_m, height_m) = (stairs.length_m, stairs.height_m);
        ensure!(
            (10.0..=5_000.0).contains(&length_m),
            "mission.staircase.length_m: found {length_m}, expected 10 to 5000"
        );
        let make = |&n: &usize| (format!("{n} waypoints"), staircase(n, length_m, height_m), vec![]);
        Ok(stairs.waypoints.iter().map(make).collect())
    }
}

impl Swarm {
    /// In every formation and size that varies.
    fn varied(&self, vary: &Vary, mission: &Mission, folder: &Path) -> Result<Vec<Scenario>> {
        let formations: &[String] = match &*vary.formation {
            [] => std::slice::from_ref(&self.formation),
            varied => varied,
        };
        let own = [Size { aircraft: self.aircraft, distance_m: self.distance_m }];
        let sizes = if vary.size.is_empty() { &own[..] } else { &vary.size };
        let mut all = Vec::new();
        for formation in formations {
            for &Size { aircraft, distance_m } in sizes {
                let swarm = Self { formation: formation.clone(), aircraft, distance_m, ..self.clone() };
                all.extend(swarm.scenarios(mission, folder)?);
            }
        }
        Ok(all)
    }

    fn scenarios(&self, mission: &Mission, folder: &Path) -> Result<Vec<Scenario>> {
        let layout: Layout = self.formation.parse().map_err(|e| anyhow!("swarm.formation: {e}"))?;
        let ground = self.ground.as_deref().unwrap_or("linear");
        let ground: Layout = ground.parse().map_err(|e| anyhow!("swarm.ground: {e}"))?;
        let offsets = match (&self.formation_file, layout) {
            (None, _) => Offsets::new(),
            (Some(file), Layout::Custom) => wingbeat_onboard::formation::read(&folder.join(file))
                .map_err(|cause| anyhow!("swarm.formation_file: {cause}"))?,
            (Some(file), _) => {
                bail!("swarm.formation_file: found '{file}' and formation {layout}, expected custom")
            }
        };
        let scenario = |(name, points, stated): Waypoints| {
            let mut scenario = Scenario::muscop(&name, points);
            if !stated.is_empty() {
                scenario = Scenario { stated, ..scenario }.measured_from_its_start();
            }
            (scenario.gps_noise_m, scenario.slope_m) = (self.gps_noise_m, self.slope_m);
            if let Task::Swarm(task) = &mut scenario.task {
                task.aircraft = self.aircraft;
                (task.layout, task.ground) = (layout, ground);
                task.offsets = offsets.clone();
                task.distance_m = self.distance_m;
                task.landing_distance_m = self.landing_distance_m.unwrap_or(task.landing_distance_m);
                task.speed_m_s = self.speed_m_s;
                task.accepts_close = self.accepts_close;
                task.orders_wait = self.orders_wait_for_telemetry;
                task.clock_walk_s = self.clock_walk_ms * 1e-3;
            }
            scenario
        };
        Ok(mission.missions(folder)?.into_iter().map(scenario).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../plans/muscop-overhead.toml");

    fn read(text: &str) -> Result<Plan> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        Plan::read(&path)
    }

    #[test]
    fn a_measured_channel_is_read_from_its_file_or_explained() {
        let folder = tempfile::tempdir().unwrap();
        let flown = |channel: &str, table: &str| {
            std::fs::write(folder.path().join("table.toml"), table).unwrap();
            let plan: Plan = toml::from_str(&GOOD.replacen("[channel]", channel, 1)).unwrap();
            let plan = Plan { vary: Vary { channel: vec!["table".into()], ..plan.vary.clone() }, ..plan };
            plan.scenarios(folder.path(), 0)
        };
        let with_file = "[channel]\ntable = \"table.toml\"";
        let scenarios = flown(with_file, "loss = [[0, 0.0], [100, 0.5]]").unwrap();
        assert!(!scenarios.is_empty() && scenarios.iter().all(|s| s.channel.loss(50.0) == 0.25));
        for (channel, table, words) in [
            ("[channel]", "", "channel.table: found none, expected the file"),
            ("[channel]\ntable = \"none.toml\"", "", "none.toml"),
            (with_file, "loss = [[5, 0], [4, 0]]", "row 2: found 4 m, expected metres"),
        ] {
            let message = format!("{:#}", flown(channel, table).unwrap_err());
            assert!(message.contains(words), "{message}");
        }
    }

    /// A hold, a speed, a yaw of the autopilot's own, a take-off to another height, a return at the end.
    const STATED: &str = "QGC WPL 110\n0 1 0 16 0 0 0 0 39.4825 -0.3462 5 1\n1 0 3 22 0 0 0 0 0 0 50 1\n\
        2 0 3 178 1 3 -1 0 0 0 0 1\n3 0 3 16 30 0 0 0 39.4825 -0.3462 20 1\n\
        4 0 3 16 0 0 0 90 39.4835 -0.3462 20 1\n5 0 3 20 0 0 0 0 0 0 0 1\n";

    #[test]
    fn what_a_mission_file_states_and_is_not_flown_is_refused_and_noted_where_it_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stated.waypoints"), STATED).unwrap();
        let plan = |from: &str, path: &str| {
            let text = from.replace(path, "stated.waypoints");
            assert_ne!(text, from);
            let path = folder.path().join("plan.toml");
            std::fs::write(&path, text).unwrap();
            Plan::read(&path).and_then(|plan| plan.notes(folder.path()))
        };
        let survey = include_str!("../plans/survey.toml");
        let survey = survey.to_owned() + "\n[vary]\nformation = [\"linear\", \"matrix\"]\n";
        let refused = format!("{:#}", plan(&survey, "../../../deploy/missions/survey.plan").unwrap_err());
        for part in ["take_off", "speed", "hold"] {
            assert!(refused.contains(&format!("(leave it out with `leave_out`: \"{part}\")")), "{refused}");
        }
        let left_out = "[mission]\noptions = { leave_out = [\"hold\", \"speed\", \"take_off\"] }";
        let survey = survey.replace("[mission]", left_out);
        let notes = plan(&survey, "../../../deploy/missions/survey.plan").unwrap();
        let words = [
            "yaw",
            "take-off to 50 m is not flown under muscop",
            "change of speed on the way to waypoint 1 of 2 is not",
            "hold of 30 s at waypoint 1 of 2 is not",
        ];
        assert_eq!(notes.len(), words.len(), "{notes:#?}");
        for (note, words) in notes.iter().zip(words) {
            assert!(note.starts_with("mission \"stated\": ") && note.contains(words), "{note}");
        }
        let own = "name = \"a\"\ntitle = \"a\"\ntable = \"flights\"\nrepeat = 1\ntime_limit_s = 600\n\
            [own]\nvariants = [\"off\", \"mbcap-e\"]\nheight_m = 20.0\nfile = { path = \"FILE\", speed_m_s = 5.0 }\n\
            [channel]\nmodel = \"unrestricted\"\ndraw = \"packet\"\n";
        // The autopilot flies all of it but the yaw of a waypoint, which ArduCopter decides itself.
        let notes = plan(own, "FILE").unwrap();
        assert!(notes.len() == 1 && notes[0].contains("a yaw"), "{notes:#?}");
    }

    #[test]
    fn what_simulated_flight_controllers_alone_have_is_noted_where_programs_fly() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program"), "Copter V3.5.7").unwrap();
        let notes = |plan: &str| {
            let path = folder.path().join("plan.toml");
            std::fs::write(&path, plan).unwrap();
            Plan::read(&path).unwrap().notes(folder.path()).unwrap()
        };
        for (plan, key) in [
            (include_str!("../plans/muscop-overhead-sitl.toml"), "swarm.clock_walk_ms"),
            (include_str!("../plans/followme-formations.toml"), "follow.heading_noise_deg"),
        ] {
            assert!(notes(plan).is_empty(), "{key}");
            let noted = notes(&format!("autopilot = \"arducopter:program\"\n{plan}"));
            assert!(matches!(&noted[..], [one] if one.starts_with(key)), "{noted:?}");
        }
    }

    #[test]
    fn bad_plans_name_the_line_or_the_key() {
        read(GOOD).unwrap();
        for (from, to, words) in [
            ("repeat = 5", "repeat = 5\nrepaet = 6", &["unknown field `repaet`", "expected one of"][..]),
            ("aircraft = 9", "aircraft = 0", &["aircraft: found 0", "expected 1 to"]),
            ("aircraft = 9", "aircraft = \"nine\"", &["invalid type", "line"]),
            ("clock_walk_ms = 12.0", "clock_walk_ms = 101.0", &["clock walk: found 0.101 s", "0 to 0.1"]),
            ("\"linear\"", "\"spiral\"", &["swarm.formation", "linear, matrix, circular"]),
            ("\"linear\"", "\"custom\"", &["formation", "needs a list of slots"]),
            (
                "\"linear\"",
                "\"linear\"\nformation_file = \"x.csv\"",
                &["formation_file: found 'x.csv'", "custom"],
            ),
            (
                "\"linear\"",
                "\"custom\"\nformation_file = \"x.csv\"",
                &["swarm.formation_file", "x.csv: No such"],
            ),
            ("\"unrestricted\"", "\"wifi\"", &["channel.model", "found 'wifi'"]),
            ("\"second\"", "\"hour\"", &["channel.draw", "found 'hour'"]),
            ("\"second\"", "\"second\"\nsignatures = \"none\"", &["channel.signatures", "found 'none'"]),
            (
                "repeat = 5",
                "repeat = 5\nautopilot = \"4.6\"",
                &["autopilot: found '4.6', expected 3.5.7 or 4.6.2"],
            ),
            ("repeat = 5", "repeat = 5\nstep_ms = 15", &["step_ms: found 15, expected 10 to 100, in tens"]),
            ("repeat = 5", "repeat = 5\nstep_ms = 20", &["step_ms: found 20, expected none"]),
            ("length_m = 1840.0", "length_m = nan", &["length_m: found NaN"]),
            (
                "height_m = 10.0",
                "height_m = 500.0",
                &[
                    "mission 2 waypoints",
                    "waypoint 0: found 500 m above home, expected 2 to 120 m (the fence)",
                ],
            ),
            (
                "aircraft = 9",
                "aircraft = 9\ngps_noise_m = 11.0",
                &["gps_noise_m: found 11, expected 0 to 10"],
            ),
            ("speed_m_s = 10.0", "speed_m_s = 21.0", &["speed_m_s: found 21, expected 0.5 to 20 m/s"]),
            ("[2, ", "[1, ", &["mission 1 waypoints", "the mission has 1 waypoints, expected 2 to 600"]),
            ("[2, ", "[601, ", &["mission.staircase.waypoints: found 601, expected 600 at most"]),
            ("repeat = 5", "repeat = 0", &["repeat: found 0"]),
            ("[swarm]", "[swarm", &["line"]),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let message = format!("{:#}", read(&GOOD.replacen(from, to, 1)).unwrap_err());
            for word in words {
                assert!(message.contains(word), "{to}: {message}");
            }
            assert!(message.contains("plan.toml"), "{message}");
        }
        let message = format!("{:#}", Plan::read(Path::new("/nowhere/x.toml")).unwrap_err());
        assert!(message.contains("/nowhere/x.toml"), "{message}");
    }

    #[test]
    fn the_autopilot_is_a_key_of_every_plan_and_3_5_7_without_it() {
        let follow = include_str!("../plans/followme-refresh.toml");
        for text in [GOOD, include_str!("../plans/mbcap-pairs.toml"), follow] {
            let profiles = |text: &str| -> Vec<Profile> {
                let plan: Plan = toml::from_str(text).unwrap();
                plan.scenarios(Path::new("plans"), 1).unwrap().iter().map(|s| s.profile).collect()
            };
            assert!(profiles(text).iter().all(|p| *p == Profile::Copter357));
            let newer = format!("autopilot = \"4.6.2\"\n{text}");
            assert!(profiles(&newer).iter().all(|p| *p == Profile::Copter462));
        }
    }

    #[test]
    fn conditions_surround_every_flight_and_bad_ones_are_named() {
        let conditions = "[conditions]\nwind_m_s = 3.0\nwind_from_deg = 90\ngusts_m_s = 1.0\ngnss_bias_m = 1.5\n\
             ground_altitude_m = 2500.0\nbattery_mah = 5000\nbattery_percent = 60\nstarts_file = \"starts.csv\"\n";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("starts.csv"), "east_m,north_m\n1,2\n3,4\n").unwrap();
        let pairs = include_str!("../plans/mbcap-pairs.toml").replace("wind_m_s = 5.8", "");
        let read = |text: &str| Plan::parse(text, folder.path());
        let scenarios = read(&format!("{pairs}\n{conditions}")).unwrap().scenarios(folder.path(), 1).unwrap();
        for scenario in &scenarios {
            assert_eq!(scenario.wind.speed_m_s, 3.0);
            assert_eq!(scenario.home(1, 7).altitude_mm, 2_500_000);
            assert!((scenario.gnss_bias(0, 7).length() - 1.5).abs() < 1e-9);
            assert_ne!(scenario.gnss_bias(0, 7), scenario.gnss_bias(1, 7));
            let charge = crate::scenario::Charge { capacity_mah: Some(5000.0), percent: 60.0 };
            assert_eq!(scenario.charge, Some(charge));
            let between = wingbeat_geo::Frame::new(scenario.home(0, 7)).to_local(scenario.home(1, 7));
            assert!((between.x - 2.0).abs() < 0.05 && (between.y - 2.0).abs() < 0.05, "{between}");
        }
        for (from, to, message) in [
            ("gusts_m_s = 1.0", "gusts_m_s = 11.0", "conditions.gusts_m_s: found 11, expected 0 to 10"),
            ("wind_m_s = 3.0", "wind = 3.0", "unknown field `wind`"),
            ("starts.csv", "none.csv", "conditions.starts_file"),
            (
                "battery_percent = 60",
                "battery_percent = 0",
                "conditions.battery_percent: found 0, expected 1 to 100",
            ),
        ] {
            let text = format!("{pairs}\n{}", conditions.replacen(from, to, 1));
            let found = format!("{:#}", read(&text).unwrap_err());
            assert!(found.contains(message), "{found}");
        }
        let windy = include_str!("../plans/mbcap-pairs.toml");
        let found = format!("{:#}", read(&format!("{windy}\n{conditions}")).unwrap_err());
        assert!(found.contains("found wind of the flight"), "{found}");
        std::fs::write(folder.path().join("starts.csv"), "east_m,north_m\n1,2\n").unwrap();
        let found = format!("{:#}", read(&format!("{pairs}\n{conditions}")).unwrap_err());
        assert!(found.contains("found 1 places, expected 2"), "{found}");
    }

    #[test]
    fn each_aircraft_may_have_a_speed_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = include_str!("../plans/mbcap-pairs.toml").replacen(
            "[own]",
            "[own]\nspeeds_file = \"speed.csv\"",
            1,
        );
        let read = |speeds: &str| {
            std::fs::write(folder.path().join("speed.csv"), speeds).unwrap();
            Plan::parse(&text, folder.path())
        };
        let plan = read("7.5\n12\n3\n").unwrap();
        let scenarios = plan.scenarios(folder.path(), 1).unwrap();
        assert!(scenarios.iter().all(|s| (s.speed_m_s(0), s.speed_m_s(1)) == (7.5, 12.0)));
        for (speeds, message) in [
            ("7.5\n", "own.speeds_file: found 1 speeds, expected 2"),
            ("7.5\nfast\n", "line 2: found \"fast\", expected a speed in m/s"),
            ("7.5\n0\n", "speed_m_s: found 0"),
        ] {
            let found = format!("{:#}", read(speeds).unwrap_err());
            assert!(found.contains(message), "{found}");
        }
    }

    #[test]
    fn bad_missions_of_their_own_are_named() {
        let crowd = include_str!("../plans/mbcap-crowd.toml");
        let pairs = include_str!("../plans/mbcap-pairs.toml");
        for (text, from, to, words) in [
            (crowd, "\"mbcap-e\"]", "\"mbcap-x\"]", &["unknown variant `mbcap-x`", "line"][..]),
            (crowd, "[\"off\", \"mbcap\", \"mbcap-e\"]", "[]", &["own.variants: found none"]),
            (crowd, "[25, 50, 75, 100]", "[2600]", &["own.crowd", "start_distance_m: found 100"]),
            (crowd, "[25, 50, 75, 100]", "[129]", &["aircraft: found 129, expected 1 to 128"]),
            (crowd, "waypoints = 100", "waypoints = 601", &["waypoints: found 601, expected 600 at most"]),
            (crowd, "linearity = 0.75", "linearity = 2.0", &["linearity: found 2"]),
            (crowd, "height_m = 10.0", "height_m = 0.0", &["aircraft 1", "waypoint 0: found 0 m above home"]),
            (
                crowd,
                "waypoints = 100",
                "waypoints = 1",
                &["aircraft 1", "found 1 waypoints, expected 2 to 600"],
            ),
            (pairs, "wind_m_s = 5.8", "wind_m_s = 58.0", &["wind: found 58 m/s"]),
            (pairs, "[[-750, 0], [750, 0]]", "[[-750, 0]]", &["aircraft 1", "found 1 waypoints"]),
            (
                pairs,
                "[channel]",
                "[swarm]\naircraft = 3\nformation = \"linear\"\ndistance_m = 5.0\nspeed_m_s = 5.0\n[channel]",
                &["either swarm and mission, or own"],
            ),
        ] {
            assert!(text.contains(from), "{from}");
            let message = format!("{:#}", read(&text.replacen(from, to, 1)).unwrap_err());
            for word in words {
                assert!(message.contains(word), "{to}: {message}");
            }
        }
    }
}
