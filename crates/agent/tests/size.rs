//! How much memory one aircraft takes: a bench keeps 100 of them, an aircraft has no heap for more.

use wingbeat_agent::Agent;

/// It grows with the route (600 waypoints) and with the table of neighbours (110), and not beyond this.
#[test]
fn an_agent_takes_at_most_128_kib() {
    let found = size_of::<Agent>();
    println!("an agent takes {found} bytes");
    assert!(found <= 128 * 1024, "found {found} bytes, expected at most {}", 128 * 1024);
}
