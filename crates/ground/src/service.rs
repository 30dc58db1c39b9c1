//! What the HTTP handlers and the handle share: the channel to the owner.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Client;
use tokio::sync::{mpsc, oneshot};
use wingbeat_api::{
    AlarmsAcknowledge, Checklist, FleetAircraft, FleetAlarms, FleetBundle, FleetBundleRequest,
    FleetCommandNote, FleetCommandRequest, FleetFlightSetupWrite, FleetFlightSetups, FleetLeases,
    FleetLinkTest, FleetLinks, FleetParameterWrite, FleetParameters, FleetPicture, FleetRegionWrite,
    FleetRegions, FleetTakeOver, LinkTestRequest, ParameterComparison, ParameterReference, ParameterWrite,
    TickWrite, check_fence, check_rally,
};

use crate::access::Access;
use crate::bundle::Source;
use crate::bundle_desk;
use crate::checklist;
use crate::client::Clients;
use crate::flight_setups;
use crate::lease;
use crate::links::{self, LinkTest, Party};
use crate::owner::{Admitted, Found, Request, Subscription};
use crate::param_file;
use crate::parameters::{self, Asked, Known, Wanted};
use crate::readers::Readers;
use crate::refused::Refused;
use crate::regions;
use crate::tiles::Map;

/// The owner's front.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    owner: mpsc::Sender<Request>,
    clients: Clients,
    web_dir: Option<Arc<Path>>,
    map: Option<Map>,
    /// The lab's profile of parameters.
    folder: Option<Arc<Path>>,
    /// Recorded flights.
    records: Option<Arc<Path>>,
    parameters: Arc<parameters::Desk>,
    regions: Arc<regions::Desk>,
    readers: Arc<Readers>,
    links: Arc<links::Desk>,
    bundles: Arc<bundle_desk::Desk>,
    access: Arc<Access>,
    checklist: Arc<checklist::Desk>,
}

/// What the service reads from its computer, where it is given.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// The built page.
    pub(crate) web_dir: Option<PathBuf>,
    /// The map of the ground.
    pub(crate) map: Option<Map>,
    /// The lab's profile of parameters.
    pub(crate) parameters: Option<PathBuf>,
    /// Recorded flights: a canonical path.
    pub(crate) records: Option<PathBuf>,
}

impl Service {
    pub(crate) fn new(
        owner: mpsc::Sender<Request>,
        clients: Clients,
        files: Files,
        access: Access,
        checklist: Arc<checklist::Desk>,
    ) -> Self {
        Self {
            owner,
            clients,
            web_dir: files.web_dir.map(Arc::from),
            map: files.map,
            folder: files.parameters.map(Arc::from),
            records: files.records.map(Arc::from),
            parameters: Arc::default(),
            regions: Arc::default(),
            readers: Arc::default(),
            links: Arc::default(),
            bundles: Arc::default(),
            access: Arc::new(access),
            checklist,
        }
    }

    /// The token of the lease of the aircraft at that address.
    pub(crate) fn token(&self, address: &str) -> Option<String> {
        self.clients.tokens().get(address)
    }

    /// Who may do what.
    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// The lab's checklist.
    pub(crate) fn checklist_desk(&self) -> &Arc<checklist::Desk> {
        &self.checklist
    }

    /// It with its ticks.
    pub(crate) fn checklist(&self) -> Result<Checklist, Refused> {
        self.checklist.shown().ok_or_else(checklist::none)
    }

    /// Ticks an item of it, or unticks it; `by` is the user's name, or an address.
    pub(crate) async fn tick(&self, write: &TickWrite, by: &str) -> Result<Checklist, Refused> {
        self.checklist.write(write, by, &self.picture().await?).await?;
        self.checklist()
    }

    /// Unticks all of it.
    pub(crate) async fn begin_checklist_anew(&self) -> Result<Checklist, Refused> {
        self.checklist.begin_anew().await?;
        self.checklist()
    }

    /// The client for the aircraft with this id.
    pub(crate) fn client_of(&self, id: &str) -> Result<Client, String> {
        self.clients.of(id)
    }

    pub(crate) fn web_dir(&self) -> Option<&Path> {
        self.web_dir.as_deref()
    }

    /// The map of the ground.
    pub(crate) fn map(&self) -> Option<&Map> {
        self.map.as_ref()
    }

    /// The directory of recorded flights.
    pub(crate) fn records(&self) -> Result<Arc<Path>, Refused> {
        self.records.clone().ok_or_else(|| {
            Refused::not_found(
                "found no directory of recorded flights, expected one (wingbeat ground --records)".to_owned(),
            )
        })
    }

    /// The threads for what takes a while.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    pub(crate) async fn picture(&self) -> Result<FleetPicture, Refused> {
        self.ask(Request::Picture).await
    }

    pub(crate) async fn subscribe(&self) -> Result<Subscription, Refused> {
        self.ask(Request::Subscribe).await?
    }

    /// `by` is the user's name.
    pub(crate) async fn admit(&self, request: FleetCommandRequest, by: String) -> Result<Admitted, Refused> {
        self.ask(|reply| Request::Command(request, by, reply)).await?
    }

    /// The address of the one aircraft that has this id.
    pub(crate) async fn locate(&self, id: String) -> Result<String, Refused> {
        self.ask(|reply| Request::Locate(id, reply)).await?
    }

    /// One aircraft with all that is known of it.
    pub(crate) async fn aircraft(&self, id: String) -> Result<FleetAircraft, Refused> {
        self.ask(|reply| Request::Aircraft(id, reply)).await?
    }

    /// Acknowledges alarms; `by` is the user's name, or an address.
    pub(crate) async fn acknowledge(
        &self,
        request: AlarmsAcknowledge,
        by: String,
    ) -> Result<FleetAlarms, Refused> {
        self.ask(|reply| Request::Acknowledge(request, by, reply)).await?
    }

    /// Keeps why a command was given.
    pub(crate) async fn note(&self, note: FleetCommandNote) -> Result<(), Refused> {
        self.ask(|reply| Request::Note(note, reply)).await?
    }

    /// An aircraft that was found. Where the service is ending, it is not followed.
    pub(crate) async fn found(&self, found: Found) {
        let _ = self.owner.send(Request::Found(found)).await;
    }

    /// Whether one of these addresses is followed.
    pub(crate) async fn follows(&self, addresses: Vec<String>) -> bool {
        self.ask(|reply| Request::Follows(addresses, reply)).await.unwrap_or(true)
    }

    /// The service's bundles.
    pub(crate) fn bundles(&self) -> &bundle_desk::Desk {
        &self.bundles
    }

    /// Begins to collect the logs of all aircraft.
    pub(crate) async fn begin_bundle(&self, request: FleetBundleRequest) -> Result<FleetBundle, Refused> {
        let source = |one: FleetAircraft| {
            let (id, name) = one.status.map(|status| (status.id, status.name)).unzip();
            Source { address: one.address, id, name: name.unwrap_or_default() }
        };
        let sources = self.picture().await?.aircraft.into_iter().map(source).collect();
        let checklists = self.checklist.of_last(request.hours);
        self.bundles.begin(request, self.clients.keys().cloned(), sources, checklists)
    }

    /// The links of every pair.
    pub(crate) async fn links(&self) -> Result<FleetLinks, Refused> {
        let aircraft = self.ask(Request::Addresses).await?;
        Ok(self.links.matrix(self.clients.any(), aircraft).await)
    }

    /// Begins a test of a link.
    pub(crate) async fn begin_link_test(&self, request: LinkTestRequest) -> Result<FleetLinkTest, Refused> {
        let found = request.receivers.len();
        if found > links::RECEIVERS_MAX {
            let expected = links::RECEIVERS_MAX;
            return Err(Refused::bad_request(format!("receivers: found {found}, expected 1 to {expected}")));
        }
        let sender = self.party(&request.sender).await?;
        let mut receivers = Vec::with_capacity(found);
        for id in &request.receivers {
            receivers.push(self.party(id).await?);
        }
        let test = LinkTest::new(self.clients.any().clone(), request, sender, receivers);
        self.links.begin(test).await
    }

    async fn party(&self, id: &str) -> Result<Party, Refused> {
        let address = self.locate(id.to_owned()).await?;
        Ok(Party { id: id.to_owned(), token: self.token(&address), address })
    }

    /// These aircraft, or all of which the id is known.
    async fn asked(&self, vehicles: &[String]) -> Result<Vec<Asked>, Refused> {
        let aircraft = self.picture().await?.aircraft;
        let names: BTreeMap<String, String> = aircraft
            .iter()
            .filter_map(|one| one.status.as_ref())
            .map(|status| (status.id.clone(), status.name.clone()))
            .collect();
        let ids: Vec<String> =
            if vehicles.is_empty() { names.keys().cloned().collect() } else { vehicles.to_vec() };
        let mut asked = Vec::with_capacity(ids.len());
        for id in ids {
            let client = self.client_of(&id).map_err(Refused::unavailable)?;
            let party = match self.party(&id).await {
                Ok(party) => party,
                // Of all, one that two aircraft claim is left out: the picture says so.
                Err(_) if vehicles.is_empty() => continue,
                Err(refused) => return Err(refused),
            };
            asked.push(Asked { party, name: names.get(&id).cloned().unwrap_or_default(), client });
        }
        Ok(asked)
    }

    /// How far all have come with their parameters.
    pub(crate) async fn parameters(&self) -> Result<FleetParameters, Refused> {
        Ok(parameters::progress(self.asked(&[]).await?).await)
    }

    /// These aircraft read their parameters, or all.
    pub(crate) async fn read_parameters(&self, vehicles: &[String]) -> Result<FleetParameters, Refused> {
        Ok(parameters::read(self.asked(vehicles).await?).await)
    }

    /// Gives each aircraft its parameters.
    pub(crate) async fn write_parameters(
        &self,
        write: FleetParameterWrite,
    ) -> Result<FleetParameters, Refused> {
        let ids: Vec<String> = write.vehicles.iter().map(|one| one.vehicle.clone()).collect();
        if ids.is_empty() {
            return Err(Refused::bad_request("vehicles: found none, expected at least one".to_owned()));
        }
        check_once(&ids)?;
        let asked = self.asked(&ids).await?;
        let each = write.vehicles.into_iter().map(|one| ParameterWrite { parameters: one.parameters });
        Ok(parameters::write(asked.into_iter().zip(each).collect()).await)
    }

    /// Takes over the leases of these aircraft, or all, that other consoles hold.
    pub(crate) async fn take_over(&self, take_over: &FleetTakeOver) -> Result<FleetLeases, Refused> {
        check_once(&take_over.vehicles)?;
        let console = self.picture().await?.console;
        let asked = self.asked(&take_over.vehicles).await?;
        Ok(lease::take_over(asked, &console, self.clients.tokens()).await)
    }

    /// How all are to fly, compared.
    pub(crate) async fn flight_setups(&self) -> Result<FleetFlightSetups, Refused> {
        Ok(flight_setups::state(self.asked(&[]).await?).await)
    }

    /// Sets these aircraft up alike, or all.
    pub(crate) async fn write_flight_setups(
        &self,
        write: &FleetFlightSetupWrite,
    ) -> Result<FleetFlightSetups, Refused> {
        check_once(&write.vehicles)?;
        Ok(flight_setups::write(self.asked(&write.vehicles).await?, write).await)
    }

    /// Fence and rally points of all, compared.
    pub(crate) async fn regions(&self) -> Result<FleetRegions, Refused> {
        Ok(self.regions.state(self.asked(&[]).await?).await)
    }

    /// These aircraft read theirs, or all.
    pub(crate) async fn read_regions(&self, vehicles: &[String]) -> Result<FleetRegions, Refused> {
        Ok(self.regions.read(self.asked(vehicles).await?).await)
    }

    /// Sends these aircraft, or all, the same.
    pub(crate) async fn write_regions(&self, write: &FleetRegionWrite) -> Result<FleetRegions, Refused> {
        let FleetRegionWrite { vehicles, region } = write;
        check_once(vehicles)?;
        if region.fence.is_none() && region.rally.is_none() {
            let problem = "region: found neither fence nor rally, expected at least one".to_owned();
            return Err(Refused::bad_request(problem));
        }
        let checked = region.fence.as_deref().map_or(Ok(()), |fence| check_fence(fence).map(drop));
        let rally = || region.rally.as_deref().map_or(Ok(()), |rally| check_rally(rally).map(drop));
        checked.and_then(|()| rally()).map_err(Refused::bad_request)?;
        Ok(self.regions.write(self.asked(vehicles).await?, region).await)
    }

    /// The parameters of one, as a file, and the file's name.
    pub(crate) async fn parameter_file(&self, vehicle: &str) -> Result<(String, String), Refused> {
        let asked = self.asked(std::slice::from_ref(&vehicle.to_owned())).await?;
        let known = self.parameters.known(asked).await;
        let Some(Known { id, name, progress, list }) = known.first() else {
            return Err(Refused::not_found(format!("vehicle: found {vehicle:?}, expected an aircraft's id")));
        };
        let progress = progress.as_ref().map_err(|why| Refused::unavailable(format!("{name}: {why}")))?;
        if progress.age_ms.is_none() {
            let found = list.len();
            let problem =
                format!("{name}: found {found} parameters, expected the whole list; let it be read first");
            return Err(Refused::conflict(problem));
        }
        let title = format!("{} parameters of {name} ({id})", list.len());
        Ok((format!("{id}.param"), param_file::write(&title, list)))
    }

    /// The parameters of all, compared.
    pub(crate) async fn compare_parameters(
        &self,
        reference: ParameterReference,
    ) -> Result<ParameterComparison, Refused> {
        let known = self.parameters.known(self.asked(&[]).await?).await;
        let folder = self.folder.clone().filter(|_| reference.profile.is_none());
        let work = move || {
            let wanted = match folder {
                Some(folder) => {
                    let names: Vec<_> = known.iter().map(|one| (one.id.clone(), one.name.clone())).collect();
                    Wanted::of_folder(&folder, &names)
                }
                None => Wanted::sent(&reference),
            };
            parameters::compare(&known, &wanted)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| Refused::busy(format!("the parameters were not compared: {error}")))
    }

    pub(crate) async fn end_link_test(&self) -> Result<FleetLinkTest, Refused> {
        self.links.end().await
    }

    /// The test that runs, or the last.
    pub(crate) async fn link_test(&self) -> Result<LinkTest, Refused> {
        self.links.test().await
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Refused> {
        let ending = || Refused::busy("the ground service is ending".to_owned());
        let (reply, answer) = oneshot::channel();
        self.owner.send(request(reply)).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())
    }
}

/// Whether each id is named once.
fn check_once(ids: &[String]) -> Result<(), Refused> {
    let mut once = BTreeSet::new();
    match ids.iter().find(|id| !once.insert(*id)) {
        Some(twice) => {
            Err(Refused::bad_request(format!("vehicles: found {twice:?} twice, expected each once")))
        }
        None => Ok(()),
    }
}
