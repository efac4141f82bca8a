//! Who holds a port that is in use, as far as the system tells.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// The state of a socket that listens, in the tables of `/proc/net`.
const LISTENS: &str = "0A";

/// The process that listens at the port: its id and its name. `None` where the system does not say, as for a process of
/// somebody else.
pub(crate) fn holder(address: SocketAddr) -> Option<(u32, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| listeners(table, address.port()))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    let id = ids.find(|id| holds(Path::new(&format!("/proc/{id}/fd")), &sockets))?;
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    Some((id, name.trim().to_owned()))
}

/// The inodes of the sockets that listen at `port`, in a table of `/proc/net`.
fn listeners(table: &str, port: u16) -> impl Iterator<Item = &str> {
    table.lines().skip(1).filter_map(move |line| {
        let mut columns = line.split_ascii_whitespace();
        let (_, at) = columns.nth(1)?.rsplit_once(':')?;
        let state = columns.nth(1)?;
        let inode = columns.nth(5)?;
        (state == LISTENS && u16::from_str_radix(at, 16) == Ok(port)).then_some(inode)
    })
}

fn holds(descriptors: &Path, sockets: &[String]) -> bool {
    let open = fs::read_dir(descriptors).into_iter().flatten().flatten();
    let mut targets = open.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_system_names_the_sockets_that_listen() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0 100\n   \
            1: 0100007F:2253 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 12346 1 0 100\n   \
            2: 0100007F:2254 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12347 1 0 100\n";
        assert_eq!(listeners(table, 8787).collect::<Vec<_>>(), ["12345"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_port_that_this_process_holds_is_found_with_it() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(holder(held.local_addr().unwrap()).map(|(id, _)| id), Some(std::process::id()));
    }
}
