//! A fleet's bundle of keys, handed to many aircraft.

use std::time::Duration;

use tokio::task::JoinSet;
use wingbeat_api::{Keys, paths};

use crate::client::{self, Clients};
use crate::{StartError, addresses};

/// The aircraft verifies the bundle and writes it to its card before it answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// What came of it at one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The address.
    pub address: String,
    /// Id of the aircraft that answers there; none where none does.
    pub aircraft: Option<String>,
    /// What it holds now, or why it did not take the bundle.
    pub result: Result<Keys, String>,
}

/// Hands a bundle to the aircraft whose APIs are at these addresses, all at the same time; a receipt for each, in their order. The
/// authority's signature in it is what the aircraft ask for, and no lease; `keys` are those of a console that they know, for the connection.
///
/// # Errors
/// An address that is none, and no HTTP client. Nothing is sent then.
pub async fn push_keys(
    to: &[String],
    bundle: &str,
    keys: &wingbeat_keys::ConsoleKeys,
) -> Result<Vec<Receipt>, StartError> {
    let pushed = wingbeat_keys::Bundle::parse(bundle).ok().map(|bundle| bundle.terms().order());
    let keys = wingbeat_tls::Identity::new(&keys.keys.signer, &keys.keys.roster);
    let addresses = addresses(to, if keys.is_some() { "https" } else { "http" })?;
    let clients = Clients::new(keys)?;
    let mut all = JoinSet::new();
    for (place, address) in addresses.into_iter().enumerate() {
        let (clients, bundle) = (clients.clone(), bundle.to_owned());
        all.spawn(async move { (place, push(&clients, address, bundle).await) });
    }
    let mut receipts = all.join_all().await;
    receipts.sort_by_key(|(place, _)| *place);
    let judged = |mut receipt: Receipt| {
        receipt.result = receipt.result.and_then(|held| match Some((held.epoch, held.serial)) == pushed {
            true => Ok(held),
            false => Err(format!("it says that it holds epoch {}, serial {}", held.epoch, held.serial)),
        });
        receipt
    };
    Ok(receipts.into_iter().map(|(_, receipt)| judged(receipt)).collect())
}

async fn push(clients: &Clients, address: String, bundle: String) -> Receipt {
    match client::identity(clients, &address).await {
        Err(why) => Receipt { address, aircraft: None, result: Err(why) },
        Ok(identity) => {
            // This may be another connection.
            let result = match clients.of(&identity.id) {
                Ok(client) => put(&client, &address, bundle).await,
                Err(why) => Err(why),
            };
            Receipt { address, aircraft: Some(identity.id), result }
        }
    }
}

async fn put(client: &reqwest::Client, address: &str, bundle: String) -> Result<Keys, String> {
    let request = client
        .put(format!("{address}{}", paths::KEYS))
        .header(reqwest::header::CONTENT_TYPE, "application/octet-stream")
        .body(bundle)
        .timeout(ANSWER_LIMIT);
    let mut response = request.send().await.map_err(|error| client::reason(&error))?;
    let body = client::body(&mut response).await?;
    if !response.status().is_success() {
        return Err(client::refusal(response.status(), &body));
    }
    serde_json::from_slice(&body).map_err(|error| format!("its answer is not what was expected: {error}"))
}
