//! Whatever comes is a message or an error that can be answered, and nothing of it panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate::json::{self, Limits};
use toolgate_gateway::mcp::message::{limits, read};

fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = read(bytes, &limits(bytes)) {
        json::read(broken.answer().as_bytes(), &Limits::default()).expect("an answer is JSON");
    }
});
