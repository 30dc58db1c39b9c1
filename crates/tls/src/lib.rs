//! TLS 1.3 between consoles and aircraft. Each proves the key that the roster has under its id, as a raw public key
//! (RFC 7250): there is no certificate, hence no authority and no date, and an aircraft's clock may show 1970.
//!
//! Who is admitted is decided here, by the roster; the handshake's signature is checked by `rustls`. Nothing is resumed:
//! each connection proves both keys anew.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, Signer as HandshakeSigner, SigningKey};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, InvalidMessage,
    PeerIncompatible, RootCertStore, ServerConfig, SignatureAlgorithm, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use wingbeat_wire::{PublicKey, Role, Roster, Signer, VehicleId};

pub use rustls::Error;
pub use tokio_rustls::{client, server};

/// The first byte of a connection that speaks TLS (RFC 8446, section 5.1: a handshake record). No HTTP request begins so.
pub const FIRST_BYTE: u8 = 0x16;

/// What precedes the 32 bytes of an Ed25519 key in its `SubjectPublicKeyInfo` (RFC 8410, section 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The other end of a connection, as it has proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The id under which the roster has its key.
    pub id: VehicleId,
    /// What it may do.
    pub role: Role,
    /// The key.
    pub key: PublicKey,
}

/// One's own key, and those of the fleet.
#[derive(Clone, Debug)]
pub struct Identity {
    own: Arc<CertifiedKey>,
    fleet: Arc<Fleet>,
}

/// Who has which key.
#[derive(Debug)]
struct Fleet {
    peers: RwLock<BTreeMap<PublicKey, Peer>>,
    provider: CryptoProvider,
}

impl Identity {
    /// That of a sender with keys; `None` without keys of its own, or without a roster of others'.
    pub fn new(signer: &Signer, roster: &Roster) -> Option<Self> {
        let spki = [SPKI_PREFIX.as_slice(), &signer.public_key()?].concat();
        let peers = RwLock::new(peers_of(roster)?);
        let key = OwnKey { signer: signer.clone(), spki: SubjectPublicKeyInfoDer::from(spki.clone()) };
        let own = CertifiedKey::new(vec![CertificateDer::from(spki)], Arc::new(key));
        let fleet = Fleet { peers, provider: ring::default_provider() };
        Some(Self { own: Arc::new(own), fleet: Arc::new(fleet) })
    }

    /// Admits the senders of another roster from now on: the next epoch's, for example. Connections that are open ask
    /// [`Self::admits`].
    pub fn renew(&self, roster: &Roster) {
        *self.fleet.peers.write().unwrap_or_else(PoisonError::into_inner) =
            peers_of(roster).unwrap_or_default();
    }

    /// Whether the other end of a connection would be admitted now.
    pub fn admits(&self, peer: Peer) -> bool {
        self.fleet.of_key(&peer.key) == Some(peer)
    }

    /// How an aircraft answers: any sender of the roster is admitted, and no other.
    ///
    /// # Errors
    /// `ring` offers nothing of TLS 1.3, which is a defect of this program.
    pub fn acceptor(&self) -> Result<Acceptor, Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(self.fleet.provider.clone()))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::new(OfClients(self.fleet.clone())))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.own.clone())));
        config.send_tls13_tickets = 0;
        Ok(Acceptor { acceptor: TlsAcceptor::from(Arc::new(config)), fleet: Some(self.fleet.clone()) })
    }

    /// How aircraft are asked: the key that answers must be an aircraft's, and if one is given, that one's.
    ///
    /// # Errors
    /// As [`Self::acceptor`].
    pub fn client(&self, only: Option<VehicleId>) -> Result<ClientConfig, Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(self.fleet.provider.clone()))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OfAircraft(self.fleet.clone(), only)))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(self.own.clone())));
        config.resumption = Resumption::disabled();
        // Who is meant is said by the key, and need not be read on the way.
        config.enable_sni = false;
        Ok(config)
    }

    /// Speaks TLS on a connection to an aircraft.
    ///
    /// # Errors
    /// The handshake failed: [`why`] tells of what.
    pub async fn connect(&self, stream: TcpStream) -> io::Result<client::TlsStream<TcpStream>> {
        // The end of the handshake and the first request are two small writes.
        stream.set_nodelay(true)?;
        let config = self.client(None).map_err(io::Error::other)?;
        let name = ServerName::IpAddress(stream.peer_addr()?.ip().into());
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Who has the key that a connection answered with.
    pub fn peer(&self, answered: &[u8]) -> Option<Peer> {
        self.fleet.peer(answered)
    }
}

/// For a client that speaks no TLS, where its library asks for some: it trusts no one.
///
/// # Errors
/// As [`Identity::acceptor`].
pub fn plain_client() -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13])?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// For a program that reaches a page by TLS: the certificate that is shown must be signed by an authority of the PEM file.
///
/// # Errors
/// A file that cannot be read or holds no authority.
pub fn page_client(authority: &Path) -> Result<ClientConfig, NoCertificate> {
    let refused = |found: String| NoCertificate::File {
        path: authority.into(),
        found,
        expected: "the certificate of an authority in PEM (pages.crt of wingbeat fleet init)",
    };
    let found = CertificateDer::pem_file_iter(authority)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in found {
        roots.add(certificate).map_err(|error| refused(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refused("no certificate".to_owned()));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13])?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Accepts connections: of the fleet, by the keys of its roster, or of browsers, which know this end by its certificate.
#[derive(Clone)]
pub struct Acceptor {
    acceptor: TlsAcceptor,
    /// The members that are admitted; without it every client is, and proves nothing by its connection.
    fleet: Option<Arc<Fleet>>,
}

/// Why a server has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum NoCertificate {
    /// A file holds none, or no key.
    #[error("{}: found {found}, expected {expected}", .path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What it holds.
        found: String,
        /// What is needed.
        expected: &'static str,
    },
    /// They do not belong together, or `ring` has no such key.
    #[error(
        "found a certificate and a key with which no TLS is served ({0}), expected a certificate and its own key"
    )]
    Pair(#[from] Error),
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptor").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

impl Acceptor {
    /// How a page is served: by the chain of certificates in one PEM file and the key of the first in another. Read anew
    /// for each start; a certificate that has expired is the browser's to refuse.
    ///
    /// # Errors
    /// A file that cannot be read or holds another thing, and a key that is not the certificate's.
    pub fn of_page(certificate: &Path, key: &Path) -> Result<Self, NoCertificate> {
        let refused =
            |path: &Path, found: String, expected| NoCertificate::File { path: path.into(), found, expected };
        let expected = "a certificate in PEM (-----BEGIN CERTIFICATE-----), those that signed it after it";
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| refused(certificate, error.to_string(), expected))?;
        if chain.is_empty() {
            return Err(refused(certificate, "no certificate".to_owned(), expected));
        }
        let expected = "its secret key in PEM (-----BEGIN PRIVATE KEY-----)";
        let secret =
            PrivateKeyDer::from_pem_file(key).map_err(|error| refused(key, error.to_string(), expected))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, secret)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), fleet: None })
    }

    /// Whether a connection proves which sender of the roster is at its other end.
    #[must_use]
    pub fn is_of_fleet(&self) -> bool {
        self.fleet.is_some()
    }

    /// Speaks TLS on a connection that was accepted; the member at its other end, where there is a roster.
    ///
    /// # Errors
    /// The handshake failed: [`why`] tells of what.
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(server::TlsStream<TcpStream>, Option<Peer>)> {
        let stream = self.acceptor.accept(stream).await?;
        let Some(fleet) = &self.fleet else { return Ok((stream, None)) };
        let certificates = stream.get_ref().1.peer_certificates();
        let peer = certificates.and_then(|all| fleet.peer(all.first()?));
        // The verifier admitted no other.
        let peer = peer.ok_or_else(|| io::Error::other(Error::from(UNKNOWN)))?;
        Ok((stream, Some(peer)))
    }
}

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The other end does not speak TLS.
    NotTls,
    /// It speaks no TLS 1.3, or none with keys in place of certificates.
    Incompatible,
    /// Its key is not in the roster, or that of the wrong role.
    UnknownKey,
    /// It refused ours.
    RefusedOurs,
    /// It did not prove its key, or broke the protocol.
    Broken,
}

const UNKNOWN: CertificateError = CertificateError::UnknownIssuer;

/// What failed in a handshake, or on a connection whose handshake the other end refused afterwards.
pub fn why(error: &(dyn std::error::Error + 'static)) -> Option<Why> {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(tls) = one.downcast_ref::<Error>() {
            return Some(meaning(tls));
        }
        // An error of the system hides what it carries from `source`.
        let carried = one.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        error = match carried {
            Some(carried) => Some(carried as &(dyn std::error::Error + 'static)),
            None => one.source(),
        };
    }
    None
}

fn meaning(error: &Error) -> Why {
    use rustls::AlertDescription as Alert;
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => Why::NotTls,
        Error::InvalidCertificate(reason) if *reason == UNKNOWN => Why::UnknownKey,
        Error::NoCertificatesPresented => Why::UnknownKey,
        Error::AlertReceived(Alert::UnknownCA | Alert::CertificateRequired) => Why::RefusedOurs,
        Error::PeerIncompatible(_)
        | Error::AlertReceived(
            Alert::ProtocolVersion
            | Alert::HandshakeFailure
            | Alert::UnsupportedCertificate
            | Alert::UnsupportedExtension,
        ) => Why::Incompatible,
        _ => Why::Broken,
    }
}

/// Who has which key by a roster; `None` without keys.
fn peers_of(roster: &Roster) -> Option<BTreeMap<PublicKey, Peer>> {
    let peer = |(id, role)| {
        let key = roster.public_key(id)?;
        Some((key, Peer { id, role, key }))
    };
    roster.senders().map(peer).collect()
}

impl Fleet {
    fn peer(&self, spki: &[u8]) -> Option<Peer> {
        self.of_key(spki.strip_prefix(&SPKI_PREFIX)?)
    }

    fn of_key(&self, key: &[u8]) -> Option<Peer> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    fn check(
        &self,
        message: &[u8],
        spki: &[u8],
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki);
        verify_tls13_signature_with_raw_key(
            message,
            &spki,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }
}

/// TLS 1.2 is not spoken.
fn never() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
}

/// Admits every sender of the roster.
#[derive(Debug)]
struct OfClients(Arc<Fleet>);

impl ClientCertVerifier for OfClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        spki: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.peer(spki).map(|_| ClientCertVerified::assertion()).ok_or(UNKNOWN.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        never()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.check(message, spki, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Admits the aircraft of the roster, or one of them.
#[derive(Debug)]
struct OfAircraft(Arc<Fleet>, Option<VehicleId>);

impl ServerCertVerifier for OfAircraft {
    fn verify_server_cert(
        &self,
        spki: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_meant = |peer: &Peer| self.1.is_none_or(|only| peer.id == only);
        let aircraft = self.0.peer(spki).filter(|peer| peer.role == Role::Aircraft && is_meant(peer));
        aircraft.map(|_| ServerCertVerified::assertion()).ok_or(UNKNOWN.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        never()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.check(message, spki, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Our own key, which never leaves its signer.
#[derive(Clone, Debug)]
struct OwnKey {
    signer: Signer,
    spki: SubjectPublicKeyInfoDer<'static>,
}

impl SigningKey for OwnKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn HandshakeSigner>> {
        offered
            .contains(&SignatureScheme::ED25519)
            .then(|| Box::new(self.clone()) as Box<dyn HandshakeSigner>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.spki.clone())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl HandshakeSigner for OwnKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature = self.signer.sign_handshake(message);
        signature.map(Into::into).ok_or_else(|| Error::General("found no handshake to sign".into()))
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

#[cfg(test)]
mod tests;
