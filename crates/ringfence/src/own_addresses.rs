//! This host's own addresses: a name that resolves to one of them leads back to the host, which no rule over names means.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All of them, as the kernel's tables say; what cannot be read is left out.
pub(crate) fn find() -> Vec<IpAddr> {
    let text = |file| std::fs::read_to_string(file).unwrap_or_default();
    let mut found: Vec<IpAddr> = v4(&text("/proc/net/fib_trie")).into_iter().map(IpAddr::V4).collect();
    found.extend(v6(&text("/proc/net/if_inet6")).into_iter().map(IpAddr::V6));
    found.sort_unstable();
    found.dedup();
    found
}

/// In the routing trie an address stands on a line of its own, and below it what it is.
fn v4(trie: &str) -> Vec<Ipv4Addr> {
    let mut last: Option<Ipv4Addr> = None;
    let mut found = Vec::new();
    for line in trie.lines() {
        let line = line.trim_start();
        if let Some(leaf) = line.strip_prefix("|-- ") {
            last = leaf.trim().parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(last);
        }
    }
    found
}

/// One address a line: 32 hexadecimal digits, then index, prefix length, scope, flags and name.
fn v6(table: &str) -> Vec<Ipv6Addr> {
    table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|digits| digits.len() == 32)
        .filter_map(|digits| u128::from_str_radix(digits, 16).ok())
        .map(Ipv6Addr::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_kernel() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 10.1.0.0/16 2 0 2\n        \
                    |-- 10.1.2.3\n           /32 host LOCAL\n        |-- 10.1.255.255\n           /32 link BROADCAST\n";
        assert_eq!(v4(trie), [Ipv4Addr::new(10, 1, 2, 3)]);
        let table = "00000000000000000000000000000001 01 80 10 80       lo\nfe80000000000000025056fffe000001 02 40 20 80 eth0\n";
        assert_eq!(v6(table), [Ipv6Addr::LOCALHOST, "fe80::250:56ff:fe00:1".parse::<Ipv6Addr>().unwrap()]);
    }

    #[test]
    fn this_host_knows_its_loopback() {
        assert!(find().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
