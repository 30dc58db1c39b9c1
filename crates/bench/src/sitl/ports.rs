//! Which instance numbers are free: every instance of SITL binds four ports, and one that is taken ends
//! the process without a message.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use anyhow::{Result, anyhow};

/// SERIAL0, SERIAL1, SERIAL2 of instance 0; every further instance is 10 higher.
const TCP: [u16; 3] = [5760, 5762, 5763];
/// The simulated receiver's input of instance 0.
const UDP: [u16; 1] = [5501];
/// Between two instances.
const STEP: u16 = 10;
/// SITL keeps the number in one byte: 3.5.7 takes 300 for 44.
pub const INSTANCE_MAX: u16 = 255;

/// The port of SERIAL0.
pub fn serial0(instance: u16) -> u16 {
    TCP[0] + STEP * instance
}

/// The port of SERIAL1.
pub fn serial1(instance: u16) -> u16 {
    TCP[1] + STEP * instance
}

/// The port of the simulated receiver.
pub fn receiver(instance: u16) -> u16 {
    UDP[0] + STEP * instance
}

/// The first port of this instance that another program has.
fn taken(instance: u16) -> Option<String> {
    let any = Ipv4Addr::UNSPECIFIED;
    let tcp = TCP.iter().map(|p| p + STEP * instance).find(|p| TcpListener::bind((any, *p)).is_err());
    let udp = UDP.iter().map(|p| p + STEP * instance).find(|p| UdpSocket::bind((any, *p)).is_err());
    tcp.map(|p| format!("TCP port {p}")).or(udp.map(|p| format!("UDP port {p}")))
}

/// The first of `count` instance numbers in a row, from `first` on, whose ports are all free.
///
/// # Errors
/// There is no such row; names the port that was taken at the last try.
pub fn free_instances(first: u16, count: usize) -> Result<u16> {
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    let (mut start, mut taken_port) = (first, String::from("the range's end"));
    while start.checked_add(count).is_some_and(|end| end <= INSTANCE_MAX + 1) {
        match (start..start + count).find_map(|i| taken(i).map(|port| (i, port))) {
            None => return Ok(start),
            Some((instance, port)) => (start, taken_port) = (instance + 1, port),
        }
    }
    Err(anyhow!(
        "SITL's ports: found {taken_port} in use, expected {count} instance numbers in a row from {first} \
         to {INSTANCE_MAX} whose ports 5760, 5762, 5763 (TCP) and 5501 (UDP), each + 10 x instance, are free"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_of_any_kind_moves_the_range_behind_it() {
        // A range of instances that no other test uses.
        let first = free_instances(200, 8).unwrap();
        let any = Ipv4Addr::UNSPECIFIED;
        let tcp = TcpListener::bind((any, 5763 + 10 * (first + 1))).unwrap();
        assert_eq!(free_instances(first, 1).unwrap(), first);
        assert!(free_instances(first, 3).unwrap() >= first + 2);
        drop(tcp);
        let _udp = UdpSocket::bind((any, 5501 + 10 * first)).unwrap();
        assert!(free_instances(first, 1).unwrap() > first);
    }

    #[test]
    fn no_room_is_an_error_with_the_range() {
        let message = free_instances(INSTANCE_MAX, 2).unwrap_err().to_string();
        assert!(message.contains("2 instance numbers") && message.contains("255"), "{message}");
    }
}
