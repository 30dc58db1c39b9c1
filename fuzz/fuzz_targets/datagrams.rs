#![no_main]

#[path = "../beacons.rs"]
#[allow(dead_code)]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::datagrams(data));
