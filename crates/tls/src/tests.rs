use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wingbeat_wire::FleetKey;

const FLEET: FleetKey = FleetKey([3; 32]);
const AIRCRAFT: (u8, Role) = (1, Role::Aircraft);
const OPERATOR: (u8, Role) = (2, Role::Operator);
const VIEWER: (u8, Role) = (3, Role::Viewer);

fn signer(secret: u8) -> Signer {
    Signer::new(&[secret; 32], 1, FLEET)
}

fn roster(members: &[(u8, Role)]) -> Roster {
    let mut roster = Roster::new(1, FLEET);
    for (secret, role) in members {
        let key = signer(*secret).public_key().unwrap();
        roster.add(VehicleId(u64::from(*secret)), *role, &key).unwrap();
    }
    roster
}

fn identity(secret: u8, members: &[(u8, Role)]) -> Identity {
    Identity::new(&signer(secret), &roster(members)).unwrap()
}

/// What both ends find when the second calls the first; the caller learns that it is refused when it reads.
async fn meet(answers: Identity, calls: Identity) -> (Result<Peer, Option<Why>>, Result<Peer, Option<Why>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut stream, peer) = answers.acceptor().unwrap().accept(stream).await.map_err(|e| why(&e))?;
        let peer = peer.unwrap();
        stream.write_all(b"x").await.map_err(|e| why(&e))?;
        stream.flush().await.map_err(|e| why(&e))?;
        // The caller hangs up.
        let _ = stream.read(&mut [0]).await;
        Ok(peer)
    });
    let called = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut stream = calls.connect(stream).await.map_err(|e| why(&e))?;
        stream.read_exact(&mut [0]).await.map_err(|e| why(&e))?;
        let key = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        Ok(calls.peer(&key).unwrap())
    }
    .await;
    (server.await.unwrap(), called)
}

#[tokio::test]
async fn both_know_whom_they_have() {
    let members = [AIRCRAFT, OPERATOR, VIEWER];
    for (secret, role) in [OPERATOR, VIEWER] {
        let (server, client) = meet(identity(1, &members), identity(secret, &members)).await;
        let [called, calls] = [1, secret].map(|secret| signer(secret).public_key().unwrap());
        assert_eq!(server, Ok(Peer { id: VehicleId(u64::from(secret)), role, key: calls }));
        assert_eq!(client, Ok(Peer { id: VehicleId(1), role: Role::Aircraft, key: called }));
    }
}

#[tokio::test]
async fn with_another_roster_one_that_is_left_out_is_admitted_no_longer() {
    let members = [AIRCRAFT, OPERATOR, VIEWER];
    let aircraft = identity(1, &members);
    let (known, _) = meet(aircraft.clone(), identity(OPERATOR.0, &members)).await;
    let known = known.unwrap();
    assert!(aircraft.admits(known));
    aircraft.renew(&roster(&[AIRCRAFT, VIEWER]));
    assert!(!aircraft.admits(known), "on a connection that is open");
    let (server, _) = meet(aircraft.clone(), identity(OPERATOR.0, &members)).await;
    assert_eq!(server, Err(Some(Why::UnknownKey)), "on another");
    let (server, _) = meet(aircraft, identity(VIEWER.0, &members)).await;
    assert!(server.is_ok());
}

#[tokio::test]
async fn a_key_of_no_roster_is_refused_by_either_end() {
    let members = [AIRCRAFT, OPERATOR];
    let stranger = identity(9, &[AIRCRAFT]);
    let (server, client) = meet(identity(1, &members), stranger).await;
    assert_eq!((server, client), (Err(Some(Why::UnknownKey)), Err(Some(Why::RefusedOurs))));
    let (server, client) = meet(identity(9, &members), identity(2, &members)).await;
    assert_eq!((server, client), (Err(Some(Why::RefusedOurs)), Err(Some(Why::UnknownKey))));
    // A console's key answers for no aircraft.
    let (server, client) = meet(identity(2, &members), identity(2, &members)).await;
    assert_eq!((server, client), (Err(Some(Why::RefusedOurs)), Err(Some(Why::UnknownKey))));
}

#[tokio::test]
async fn a_client_for_one_aircraft_speaks_to_no_other() {
    let members = [AIRCRAFT, (3, Role::Aircraft), OPERATOR];
    for (answers, met) in [(AIRCRAFT.0, true), (3, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = identity(answers, &members).acceptor().unwrap();
        let server =
            tokio::spawn(async move { acceptor.accept(listener.accept().await.unwrap().0).await.is_ok() });
        let config = identity(OPERATOR.0, &members).client(Some(VehicleId(1))).unwrap();
        let name = ServerName::IpAddress(address.ip().into());
        let stream = TcpStream::connect(address).await.unwrap();
        let met_one = TlsConnector::from(Arc::new(config)).connect(name, stream).await.is_ok();
        assert_eq!((met_one, server.await.unwrap()), (met, met), "{answers}");
    }
}

/// Signs with one key and shows another.
#[tokio::test]
async fn a_known_public_key_without_its_secret_is_refused() {
    let members = [AIRCRAFT, OPERATOR];
    let forged = |secret: u8, shown: u8| {
        let mut one = identity(secret, &members);
        let spki = [SPKI_PREFIX.as_slice(), &signer(shown).public_key().unwrap()].concat();
        let key = OwnKey { signer: signer(secret), spki: SubjectPublicKeyInfoDer::from(spki.clone()) };
        one.own = Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki)], Arc::new(key)));
        one
    };
    let (server, _) = meet(identity(1, &members), forged(9, 2)).await;
    assert_eq!(server, Err(Some(Why::Broken)));
    let (_, client) = meet(forged(9, 1), identity(2, &members)).await;
    assert_eq!(client, Err(Some(Why::Broken)));
}

#[tokio::test]
async fn one_that_speaks_no_tls_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await;
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let error = identity(2, &[AIRCRAFT, OPERATOR]).connect(stream).await.unwrap_err();
    assert_eq!(why(&error), Some(Why::NotTls), "{error}");
    server.await.unwrap();
}

#[test]
fn nothing_but_a_handshake_is_signed() {
    assert_eq!(signer(1).sign_handshake(b"version 1"), None);
    assert!(signer(1).sign_handshake(&[b' '; 65]).is_some());
    assert!(Identity::new(&Signer::insecure(), &Roster::insecure()).is_none());
}
