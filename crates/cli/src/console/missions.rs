//! Missions: what aircraft hold, files that are read, previewed, sent and written.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use tokio::task::JoinSet;
use wingbeat_api::{
    FleetMissionUpload, FleetPicture, GeoPoint, MissionExport, MissionExportFile, MissionFile,
    MissionFileContent, MissionFileOptions, MissionFormat, MissionPart, MissionSummary, PlanDraft, PlanFile,
    PlanPreview, PlanProtocol, SavedPlan, paths,
};
use wingbeat_ground::remote::{Fault, Method, Remote};

use super::orders::Targets;
use super::service::Service;
use super::{Code, show};

/// A larger file is refused before it travels, as on the page.
const FILE_LEN_MAX: u64 = 2 * 1024 * 1024;

/// What is done with missions.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// List the missions that aircraft hold.
    List {
        #[command(flatten)]
        service: Service,
    },
    /// Read a mission file (QGC WPL 110, QGroundControl plan, KML, KMZ) and list what of it is not flown. Nothing is sent to aircraft.
    /// Exit code 1 where the protocol refuses a mission of it.
    Read {
        #[command(flatten)]
        file: File,
        #[command(flatten)]
        service: Service,
    },
    /// Where missions lie against the aircraft as they are now, and what they take. Exit code 1 where they must not be sent.
    Preview {
        #[command(flatten)]
        sending: Sending,
    },
    /// Send missions: one to each of the aircraft, or a file of as many missions as there are aircraft. In a swarm the leader takes it.
    /// They are previewed first; exit code 1 where an aircraft did not take its own.
    Send {
        #[command(flatten)]
        sending: Sending,
        /// Send although the preview says that they must not be sent.
        #[arg(long)]
        anyway: bool,
    },
    /// Write missions as a file of another format.
    Export {
        #[command(flatten)]
        file: File,
        /// waypoints (QGC WPL 110), plan (QGroundControl) or kml.
        #[arg(long, value_parser = format)]
        format: MissionFormat,
        /// The file that is written.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        service: Service,
    },
    /// Write missions as a plan that `wingbeat bench run` flies.
    Plan(Plan),
    /// What such a plan holds, as JSON.
    SavedPlan {
        /// The plan.
        file: PathBuf,
        #[command(flatten)]
        service: Service,
    },
}

/// A mission file.
#[derive(Args, Clone, Debug)]
pub(crate) struct File {
    /// The mission file.
    file: PathBuf,
    /// The protocol that would fly it (mission, sweep, mbcap, mbcap-e, muscop). Default: that of the aircraft, where all fly the same.
    #[arg(long, value_name = "NAME")]
    protocol: Option<String>,
    /// Only this mission of the file, from 1.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    only: Option<u16>,
    #[command(flatten)]
    options: Options,
}

/// How a mission file is read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// Leave these out where they are not flown, separated by commas: payload (camera, gimbal, servo and relay commands),
    /// the number of a MAVLink command, hold, speed, yaw, take_off, end. Without it such a file is refused.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = left_out)]
    leave_out: Vec<LeftOut>,
    /// Where the aircraft will start, latitude,longitude,altitude above sea level: heights of a file above sea level are heights above it.
    #[arg(long, value_name = "PLACE", value_parser = place, allow_hyphen_values = true)]
    home: Option<GeoPoint>,
    /// Height above home of KML paths without heights, and to which lower points are raised, metres. Default: 5.
    #[arg(long, value_name = "METRES")]
    kml_height_least_m: Option<f64>,
    /// Greatest height above home, metres. Default: that of the aircraft's fences.
    #[arg(long, value_name = "METRES")]
    height_most_m: Option<f64>,
    /// Greatest distance from home, metres. Default: that of the aircraft's fences.
    #[arg(long, value_name = "METRES")]
    distance_most_m: Option<f64>,
    /// Greatest speed, metres per second. Default: 20.
    #[arg(long, value_name = "M_S")]
    speed_most_m_s: Option<f64>,
}

/// An entry of `--leave-out`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LeftOut {
    Payload,
    Command(u32),
    Part(MissionPart),
}

fn left_out(text: &str) -> Result<LeftOut, String> {
    let part = || MissionPart::ALL.into_iter().find(|part| part.name() == text).map(LeftOut::Part);
    match text.parse() {
        _ if text == "payload" => Ok(LeftOut::Payload),
        Ok(number) => Ok(LeftOut::Command(number)),
        Err(_) => part().ok_or_else(|| {
            format!(
                "found {text:?}, expected payload, the number of a command, hold, speed, yaw, take_off or end"
            )
        }),
    }
}

fn place(text: &str) -> Result<GeoPoint, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    match numbers.as_deref() {
        Ok(&[latitude_deg, longitude_deg, altitude_m]) => {
            Ok(GeoPoint { latitude_deg, longitude_deg, altitude_m })
        }
        _ => Err(format!("found {text:?}, expected LATITUDE,LONGITUDE,ALTITUDE, for example 39.48,-0.34,5")),
    }
}

impl Options {
    fn request(&self) -> MissionFileOptions {
        let mut options = MissionFileOptions {
            home: self.home,
            kml_height_least_m: self.kml_height_least_m,
            height_most_m: self.height_most_m,
            distance_most_m: self.distance_most_m,
            speed_most_m_s: self.speed_most_m_s,
            ..MissionFileOptions::default()
        };
        for entry in &self.leave_out {
            match entry {
                LeftOut::Payload => options.leave_out_payload = true,
                LeftOut::Command(number) => options.leave_out_commands.push(*number),
                LeftOut::Part(part) => options.leave_out.push(*part),
            }
        }
        options
    }
}

/// Missions, and who takes them.
#[derive(Args, Clone, Debug)]
#[command(override_usage = "wingbeat fleet mission send [OPTIONS] <FILE> <AIRCRAFT...|--all>")]
pub(crate) struct Sending {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    targets: Targets,
    /// How long a full battery flies, seconds; without it energy is not estimated.
    #[arg(long, value_name = "SECONDS")]
    endurance: Option<f64>,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// What a plan states besides its missions.
#[derive(Args, Clone, Debug)]
pub(crate) struct Plan {
    /// The mission file; none with follow_me, whose leader is flown by a pilot.
    #[arg(required_unless_present = "pilot")]
    file: Option<PathBuf>,
    /// Only this mission of the file, from 1.
    #[arg(long, value_name = "NUMBER", requires = "file", value_parser = clap::value_parser!(u16).range(1..))]
    only: Option<u16>,
    #[command(flatten)]
    options: Options,
    /// muscop, mbcap, mbcap-e, mission (each for itself) or follow_me.
    #[arg(long = "as", value_name = "PROTOCOL", value_parser = protocol)]
    flown: PlanProtocol,
    /// How many aircraft fly in the swarm.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=128))]
    aircraft: u8,
    /// The formation's name (`wingbeat formation` lists them).
    #[arg(long, default_value = "linear")]
    formation: String,
    /// Distance between slots, metres.
    #[arg(long, default_value_t = 50.0)]
    distance_m: f64,
    /// Speed along the legs, metres per second.
    #[arg(long, default_value_t = 10.0)]
    speed_m_s: f64,
    /// follow_me: the leader's pilot in the bench, drawn:SECONDS (30 to 3600) or published.
    #[arg(long, conflicts_with = "file")]
    pilot: Option<String>,
    /// follow_me: height above home at which the followers gather, metres.
    #[arg(long, value_name = "METRES", requires = "pilot")]
    height_m: Option<f64>,
    /// The file that is written.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    pub(crate) service: Service,
}

fn format(text: &str) -> Result<MissionFormat, String> {
    serde_json::from_value(json!(text))
        .map_err(|_| format!("found {text:?}, expected waypoints, plan or kml"))
}

fn protocol(text: &str) -> Result<PlanProtocol, String> {
    serde_json::from_value(json!(text))
        .map_err(|_| format!("found {text:?}, expected muscop, mbcap, mbcap-e, mission or follow_me"))
}

impl Command {
    pub(crate) fn service(&self) -> &Service {
        match self {
            Self::List { service }
            | Self::Read { service, .. }
            | Self::Export { service, .. }
            | Self::SavedPlan { service, .. } => service,
            Self::Preview { sending } | Self::Send { sending, .. } => &sending.service,
            Self::Plan(plan) => &plan.service,
        }
    }
}

pub(crate) async fn run(remote: &Remote, command: &Command) -> Result<Code> {
    match command {
        Command::List { service } => {
            let picture: FleetPicture = remote.get(paths::FLEET).await?;
            if service.json {
                show::answer(true, &picture.missions, |_| String::new())?;
            } else {
                show::print(&show::missions(&picture))?;
            }
        }
        Command::Read { file, service } => {
            let content = read(remote, file).await?;
            show::answer(service.json, &content, listed)?;
            if content.missions.iter().any(|read| !read.refusals.is_empty()) {
                return Ok(Code::NotAll);
            }
        }
        Command::Preview { sending } => {
            let (_, preview) = previewed(remote, sending).await?;
            show::answer(sending.service.json, &preview, show::preview)?;
            if preview.problems.iter().any(|problem| problem.stops) {
                return Ok(Code::NotAll);
            }
        }
        Command::Send { sending, anyway } => return send(remote, sending, *anyway).await,
        Command::Export { file, format, out, service } => {
            let missions = read(remote, file).await?.missions.into_iter().map(|read| read.mission).collect();
            let request = MissionExport { format: *format, missions, home: None };
            let written = remote.ask(Method::POST, paths::MISSION_EXPORT, Some(&request)).await?.json()?;
            write(out, &written, service.json)?;
        }
        Command::Plan(plan) => {
            let content = match &plan.file {
                Some(file) => {
                    let file = File {
                        file: file.clone(),
                        protocol: None,
                        only: plan.only,
                        options: plan.options.clone(),
                    };
                    read(remote, &file).await?.missions
                }
                None => vec![],
            };
            let missions = content.into_iter().map(|read| read.mission).collect();
            let request = PlanFile {
                protocol: plan.flown,
                aircraft: plan.aircraft,
                formation: plan.formation.clone(),
                distance_m: plan.distance_m,
                landing_distance_m: None,
                take_off: None,
                landing: None,
                speed_m_s: plan.speed_m_s,
                height_m: plan.height_m,
                pilot: plan.pilot.clone(),
                missions,
                home: None,
            };
            let written = remote.ask(Method::POST, paths::PLAN_FILE, Some(&request)).await?.json()?;
            write(&plan.out, &written, plan.service.json)?;
        }
        Command::SavedPlan { file, .. } => {
            let (name, text) = text_of(file)?;
            let plan: PlanFile = remote
                .ask(Method::POST, paths::SAVED_PLANS, Some(&SavedPlan { name, text }))
                .await?
                .json()?;
            show::answer(true, &plan, |_| String::new())?;
        }
    }
    Ok(Code::Done)
}

/// Name and text of a file.
fn text_of(path: &Path) -> Result<(String, String)> {
    let here = || format!("mission file {}", path.display());
    let length = std::fs::metadata(path).with_context(here)?.len();
    if length > FILE_LEN_MAX {
        bail!("{}: found {length} bytes, expected at most {FILE_LEN_MAX}; nothing is sent", here());
    }
    let bytes = std::fs::read(path).with_context(here)?;
    let text = wingbeat_missions::text_of(path, &bytes)?.into_owned();
    Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text))
}

async fn read(remote: &Remote, file: &File) -> Result<MissionFileContent> {
    let (name, text) = text_of(&file.file)?;
    let request = MissionFile {
        name,
        text,
        archive: None,
        protocol: file.protocol.clone(),
        options: file.options.request(),
    };
    let mut content: MissionFileContent =
        remote.ask(Method::POST, paths::MISSION_FILES, Some(&request)).await?.json()?;
    if let Some(number) = file.only {
        let found = content.missions.len();
        let index = usize::from(number) - 1;
        if index >= found {
            bail!(
                "--only: found {number}, expected 1 to {found}: {} has no more missions",
                file.file.display()
            );
        }
        content.missions = vec![content.missions.swap_remove(index)];
    }
    Ok(content)
}

fn listed(content: &MissionFileContent) -> String {
    let mut text = String::new();
    for (number, read) in (1..).zip(&content.missions) {
        let (name, waypoints) = (show::plain(&read.mission.name), read.mission.waypoints.len());
        text.push_str(&format!("{number} {name}: {waypoints} waypoints\n"));
        for note in &read.notes {
            text.push_str(&format!("  {}\n", show::plain(note)));
        }
        for refusal in &read.refusals {
            text.push_str(&format!("  REFUSED: {}\n", show::plain(refusal)));
        }
    }
    text
}

/// Each aircraft with its mission.
async fn previewed(remote: &Remote, sending: &Sending) -> Result<(PlanDraft, PlanPreview)> {
    let content = read(remote, &sending.file).await?;
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    let vehicles = sending.targets.listed(&picture)?;
    let found = content.missions.len();
    if found != 1 && found != vehicles.len() {
        bail!(
            "{}: found {found} missions for {} aircraft, expected one, or as many as there are aircraft (--only takes one); \
             nothing is sent",
            sending.file.file.display(),
            vehicles.len()
        );
    }
    let missions = content.missions.iter().cycle().map(|read| read.mission.clone());
    let missions = vehicles.into_iter().zip(missions);
    let missions = missions.map(|(vehicle, mission)| FleetMissionUpload { vehicle, mission }).collect();
    let draft = PlanDraft { missions, endurance_s: sending.endurance };
    let preview = remote.ask(Method::POST, paths::PLAN_PREVIEW, Some(&draft)).await?.json()?;
    Ok((draft, preview))
}

async fn send(remote: &Remote, sending: &Sending, anyway: bool) -> Result<Code> {
    let (draft, preview) = previewed(remote, sending).await?;
    let json = sending.service.json;
    let stops: Vec<&str> =
        preview.problems.iter().filter(|p| p.stops).map(|problem| problem.text.as_str()).collect();
    if !stops.is_empty() && !anyway {
        let stops = show::plain(&stops.join("; "));
        bail!("{}: {stops}; nothing is sent (--anyway sends)", sending.file.file.display());
    }
    if !json {
        show::print(&show::preview(&preview))?;
    }
    let mut all = JoinSet::new();
    for (place, upload) in draft.missions.into_iter().enumerate() {
        let remote = remote.clone();
        all.spawn(async move {
            let taken = remote.ask(Method::PUT, paths::FLEET_MISSION, Some(&upload)).await;
            let taken: Result<MissionSummary, Fault> = taken.and_then(|answer| answer.json());
            (place, upload.vehicle, taken)
        });
    }
    let mut results = all.join_all().await;
    results.sort_by_key(|(place, ..)| *place);
    let is_taken = !results.is_empty() && results.iter().all(|(.., taken)| taken.is_ok());
    if json {
        let rows = results.iter().map(|(_, vehicle, taken)| match taken {
            Ok(mission) => json!({ "vehicle": vehicle, "taken": true, "mission": mission }),
            Err(fault) => json!({ "vehicle": vehicle, "taken": false, "code": fault.code(), "message": fault.to_string() }),
        });
        show::print(&format!("{}\n", json!({ "results": rows.collect::<Vec<_>>(), "preview": preview })))?;
    } else {
        for (_, vehicle, taken) in &results {
            let line = match taken {
                Ok(mission) => format!("{vehicle}: holds {}, {} waypoints", mission.hash, mission.waypoints),
                Err(fault) => format!("{vehicle}: not taken: {}", show::plain(&fault.to_string())),
            };
            show::print(&format!("{line}\n"))?;
        }
    }
    Ok(if is_taken { Code::Done } else { Code::NotAll })
}

/// Puts a file that the service wrote where it was asked for.
fn write(out: &Path, file: &MissionExportFile, json: bool) -> Result<()> {
    std::fs::write(out, &file.text).with_context(|| format!("--out {}", out.display()))?;
    let answer = json!({ "out": out, "notes": file.notes });
    show::answer(json, &answer, |_| {
        let notes: String = file.notes.iter().map(|note| format!("  {}\n", show::plain(note))).collect();
        format!("{}: {} bytes\n{notes}", out.display(), file.text.len())
    })
}
