//! The canonical form is read back as the same value, and is its own canonical form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate::json::{Limits, canonical, read};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let Ok(value) = read(bytes, &limits) else { return };
    let text = canonical(&value);
    let again = read(text.as_bytes(), &Limits { size: usize::MAX, ..limits }).expect("canonical text is strict JSON");
    assert_eq!(canonical(&again), text);
});
