//! No contract makes loading panic or take long.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate::contract::Contract;
use toolgate::json::{Limits, read};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(keys) = read(bytes, &Limits::default()) {
        let _ = Contract::parse("fuzzed", &keys);
    }
});
