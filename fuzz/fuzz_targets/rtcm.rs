#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wingbeat_fuzz_targets::air::rtcm(data));
