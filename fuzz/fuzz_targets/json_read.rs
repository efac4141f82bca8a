//! The reader never panics, and never accepts what serde_json rejects.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate::json::{Limits, items, members, read, read_arguments};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    if read(bytes, &limits).is_ok() {
        assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok());
    }
    let _ = read_arguments(bytes, &limits);
    let _ = members(bytes, &limits);
    let _ = items(bytes, &limits);
});
