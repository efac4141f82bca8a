//! Whether an address is one of this machine itself: what is sent there nobody overhears on the way.

use std::net::IpAddr;

/// Whether this host, as it stands in an address, is this machine: `localhost`, `::1`, and all that begins with `127.`.
pub(crate) fn is_here(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_leave_the_machine_is_here() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "[::1]"] {
            assert!(is_here(host), "{host}");
        }
        for host in
            ["", "a.localhost", "localhost.", "127.0.0.1.a.example", "128.0.0.1", "0.0.0.0", "[::]", "[::2]", "[::1"]
        {
            assert!(!is_here(host), "{host}");
        }
    }
}
