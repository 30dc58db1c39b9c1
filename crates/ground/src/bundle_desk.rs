//! The bundle that the service itself collects, at an operator's click: one at a time, into its own folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use wingbeat_api::{Bundle, BundleReceiving, FleetBundle, FleetBundleRequest};

use crate::bundle::{FREE_LEAST, ReadClock, Source, Step, Wanted, collect_with};
use crate::refused::Refused;

/// Where the service's bundles go.
#[derive(Clone, Debug)]
pub struct Bundles {
    /// The folder of all experiments.
    pub folder: PathBuf,
    /// Reads the clocks of a flight log.
    pub read_clock: Option<ReadClock>,
}

/// What is known of the last one.
#[derive(Debug, Default)]
struct Known {
    running: bool,
    receiving: BTreeMap<(String, String), BundleReceiving>,
    folder: Option<PathBuf>,
    bundle: Option<Bundle>,
    problem: Option<String>,
}

/// The service's bundles.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    bundles: OnceLock<Bundles>,
    known: Arc<Mutex<Known>>,
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// From now on bundles are collected there.
    pub(crate) fn keep(&self, bundles: Bundles) {
        // Set once, by the service's owner.
        let _ = self.bundles.set(bundles);
    }

    /// How far the last one has come.
    pub(crate) fn report(&self) -> FleetBundle {
        let known = locked(&self.known);
        FleetBundle {
            running: known.running,
            folder: known.folder.as_ref().map(|folder| folder.display().to_string()),
            receiving: known.receiving.values().cloned().collect(),
            bundle: known.bundle.clone(),
            problem: known.problem.clone(),
        }
    }

    /// Begins one.
    pub(crate) fn begin(
        &self,
        request: FleetBundleRequest,
        keys: Option<wingbeat_tls::Identity>,
        sources: Vec<Source>,
        checklists: Vec<(String, Vec<u8>)>,
    ) -> Result<FleetBundle, Refused> {
        let Some(Bundles { folder, read_clock }) = self.bundles.get().cloned() else {
            let message = "bundle: found no folder for bundles, expected one (wingbeat ground --bundles)";
            return Err(Refused::conflict(message.to_owned()));
        };
        let FleetBundleRequest { experiment, hours, autopilot_logs, resume } = request;
        if autopilot_logs > 16 {
            return Err(Refused::bad_request(format!(
                "autopilot_logs: found {autopilot_logs}, expected 0 to 16"
            )));
        }
        {
            let mut known = locked(&self.known);
            if known.running {
                return Err(Refused::conflict(
                    "bundle: found one that is being collected, expected none".to_owned(),
                ));
            }
            *known = Known { running: true, ..Known::default() };
        }
        let free_least = FREE_LEAST;
        let wanted = Wanted {
            out: folder,
            experiment,
            hours,
            resume,
            autopilot_logs,
            free_least,
            read_clock,
            checklists,
            missing: vec![],
        };
        let shared = Arc::clone(&self.known);
        tokio::spawn(async move {
            let watched = Arc::clone(&shared);
            let watch = move |step: Step<'_>| note(&mut locked(&watched), step);
            let done = collect_with(&wanted, keys.as_ref(), &sources, &watch).await;
            let mut known = locked(&shared);
            known.running = false;
            known.receiving.clear();
            match done {
                Ok((folder, bundle)) => (known.folder, known.bundle) = (Some(folder), Some(bundle)),
                Err(error) => known.problem = Some(error.to_string()),
            }
        });
        Ok(self.report())
    }
}

fn note(known: &mut Known, step: Step<'_>) {
    let name =
        |source: &Source| if source.name.is_empty() { source.address.clone() } else { source.name.clone() };
    match step {
        Step::Receives(source, file, held_bytes, bytes) => {
            let receiving =
                BundleReceiving { aircraft: name(source), file: file.to_owned(), held_bytes, bytes };
            known.receiving.insert((source.address.clone(), file.to_owned()), receiving);
        }
        Step::Holds(source, file) => {
            known.receiving.remove(&(source.address.clone(), file.name.clone()));
        }
        Step::Lacks(source, missing) => {
            known.receiving.remove(&(source.address.clone(), missing.what.clone()));
        }
    }
}
