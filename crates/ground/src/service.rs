//! What the HTTP handlers and the handle share: the channel to the owner.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use wingbeat_api::{FleetCommandRequest, FleetPicture};

use crate::desk::Desk;
use crate::owner::{Admitted, Request, Subscription};
use crate::refused::Refused;

/// The owner's front.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    owner: mpsc::Sender<Request>,
    client: Client,
    desk: Option<Arc<Desk>>,
    web_dir: Option<Arc<Path>>,
    /// Mission files may be read simultaneously, so many.
    readers: Arc<Semaphore>,
}

/// Mission files that are read at the same time; each takes some 60 ms of one core.
const READERS: usize = 2;

impl Service {
    pub(crate) fn new(
        owner: mpsc::Sender<Request>,
        client: Client,
        desk: Option<Arc<Desk>>,
        web_dir: Option<PathBuf>,
    ) -> Self {
        let readers = Arc::new(Semaphore::new(READERS));
        Self { owner, client, desk, web_dir: web_dir.map(Arc::from), readers }
    }

    /// The token of the lease of the aircraft at that address, where the console has keys.
    pub(crate) fn token(&self, address: &str) -> Option<String> {
        self.desk.as_ref()?.token(address)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn web_dir(&self) -> Option<&Path> {
        self.web_dir.as_deref()
    }

    /// Waits until a mission file may be read. It is never closed, so that there is one.
    pub(crate) async fn reader(&self) -> Option<OwnedSemaphorePermit> {
        self.readers.clone().acquire_owned().await.ok()
    }

    pub(crate) async fn picture(&self) -> Result<FleetPicture, Refused> {
        self.ask(Request::Picture).await
    }

    pub(crate) async fn subscribe(&self) -> Result<Subscription, Refused> {
        self.ask(Request::Subscribe).await?
    }

    pub(crate) async fn admit(&self, request: FleetCommandRequest) -> Result<Admitted, Refused> {
        self.ask(|reply| Request::Command(request, reply)).await?
    }

    /// The address of the one aircraft that has this id.
    pub(crate) async fn locate(&self, id: String) -> Result<String, Refused> {
        self.ask(|reply| Request::Locate(id, reply)).await?
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Refused> {
        let ending = || Refused::busy("the ground service is ending".to_owned());
        let (reply, answer) = oneshot::channel();
        self.owner.send(request(reply)).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())
    }
}
