//! No message makes a dialect panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate::json::Limits;
use toolgate::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    for dialect in Dialect::ALL {
        let _ = dialect.decode(bytes, &Limits::default());
    }
});
