//! The addresses of Pods: each has one of its own in the loopback network, so that every Pod can
//! listen on the ports that its manifest names.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::Ipv4Addr;
use std::path::Path;

/// A network that addresses are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// Its first address.
    pub network: Ipv4Addr,
    /// How many bits of it are fixed.
    pub prefix_bits: u8,
}

impl Default for AddressRange {
    /// 127.64.0.0/10: four million addresses, away from 127.0.0.1, 127.0.1.1 and 127.0.0.53,
    /// which others use.
    fn default() -> Self {
        AddressRange { network: Ipv4Addr::new(127, 64, 0, 0), prefix_bits: 10 }
    }
}

/// How many bits of an address a node keeps to itself: it has 65,534 of them, so that one that is
/// given a thousand times a second rests for a minute, as long as the kernel remembers its
/// connections (TIME_WAIT). The default range has 64 such blocks.
const BLOCK_BITS: u32 = 16;

/// The file that says which block a node had last.
const LAST_BLOCK: &str = "address-block";

/// Hands out addresses. One that was given back is not used again until all others were, and a
/// node has neither those of another that runs, nor those that it had before it was started
/// again, as long as there are others.
#[derive(Debug)]
pub(crate) struct Addresses {
    first: u32,
    count: u32,
    next: u32,
    taken: HashSet<u32>,
    /// Held as long as they are handed out.
    _claim: Option<Claim>,
}

impl Addresses {
    /// Claims a part of a range for the node with this folder.
    pub(crate) fn claim(range: AddressRange, data: &Path) -> Self {
        let host_bits = 32_u32.saturating_sub(u32::from(range.prefix_bits)).min(31);
        let network = u32::from(range.network) & !((1_u32 << host_bits) - 1);
        let block_bits = host_bits.min(BLOCK_BITS);
        let blocks = 1_u32 << (host_bits - block_bits);
        let file = data.join(LAST_BLOCK);
        let last = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let begin = last.map_or_else(random, |last| last.wrapping_add(1));
        let starts = (0..blocks).map(|i| begin.wrapping_add(i) % blocks);
        let mut claimed = starts.clone().filter_map(|block| {
            let start = network + (block << block_bits);
            Some((block, Claim::try_new(start, block_bits)?))
        });
        let (block, claim) = match claimed.next() {
            Some((block, claim)) => (block, Some(claim)),
            None => {
                tracing::warn!("others use all addresses of Pods: Pods may meet on one of them");
                (begin % blocks, None)
            }
        };
        let written = fs::create_dir_all(data).and_then(|()| fs::write(&file, block.to_string()));
        if let Err(error) = written {
            let path = file.display();
            tracing::debug!(%path, %error, "the next start may give the same addresses");
        }
        let start = network + (block << block_bits);
        let mut addresses = Addresses::new(start, block_bits);
        addresses.next = random() % addresses.count;
        addresses._claim = claim;
        addresses
    }

    fn new(start: u32, bits: u32) -> Self {
        // Neither the network itself nor its broadcast address.
        let count = (1_u32 << bits).saturating_sub(2).max(1);
        Addresses { first: start + 1, count, next: 0, taken: HashSet::new(), _claim: None }
    }

    /// An address that nobody has, if there is one.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        if self.taken.len() >= self.count as usize {
            return None;
        }
        loop {
            let offset = self.next;
            self.next = (self.next + 1) % self.count;
            if self.taken.insert(offset) {
                return Some(Ipv4Addr::from(self.first + offset));
            }
        }
    }

    /// Gives an address back.
    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        self.taken.remove(&u32::from(address).wrapping_sub(self.first));
    }
}

/// Keeps a block from other nodes that share the loopback network with this one: a name that the
/// kernel gives once in that network, until its holder is gone.
#[derive(Debug)]
struct Claim {
    #[cfg(target_os = "linux")]
    _name: std::os::unix::net::UnixDatagram,
}

impl Claim {
    #[cfg(target_os = "linux")]
    fn try_new(start: u32, bits: u32) -> Option<Self> {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};

        let name = format!("stint-addresses-{}-{}", Ipv4Addr::from(start), 32 - bits);
        let name = SocketAddr::from_abstract_name(name).expect("it is short");
        UnixDatagram::bind_addr(&name).ok().map(|name| Claim { _name: name })
    }

    /// Elsewhere chance has to do.
    #[cfg(not(target_os = "linux"))]
    fn try_new(_start: u32, _bits: u32) -> Option<Self> {
        Some(Claim {})
    }
}

/// A number that nobody could have guessed.
fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(last: u8, prefix_bits: u8) -> AddressRange {
        AddressRange { network: Ipv4Addr::new(127, 63, 0, last), prefix_bits }
    }

    #[test]
    fn every_address_is_given_once_until_it_is_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut addresses = Addresses::claim(range(77, 29), folder.path());
        let all: Vec<Ipv4Addr> = std::iter::from_fn(|| addresses.take()).collect();
        let mut last_bytes: Vec<u8> = all.iter().map(|address| address.octets()[3]).collect();
        last_bytes.sort_unstable();
        assert_eq!(last_bytes, [73, 74, 75, 76, 77, 78]);
        addresses.give_back(all[3]);
        addresses.give_back(Ipv4Addr::new(1, 2, 3, 4));
        assert_eq!(addresses.take(), Some(all[3]));
        assert_eq!(addresses.take(), None);
    }

    #[test]
    fn an_address_rests_until_all_others_were_used() {
        let mut addresses = Addresses::new(u32::from(Ipv4Addr::new(127, 64, 0, 0)), 4);
        let given: Vec<u8> = std::iter::from_fn(|| {
            let address = addresses.take()?;
            addresses.give_back(address);
            Some(address.octets()[3])
        })
        .take(16)
        .collect();
        assert_eq!(given[..15], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1]);
    }

    #[test]
    fn a_block_has_one_node_and_the_next_start_takes_another() {
        let folder = tempfile::tempdir().expect("a folder");
        // Four blocks, which no other test uses.
        let network = Ipv4Addr::new(127, 40, 0, 0);
        let range = AddressRange { network, prefix_bits: 14 };
        let block = |addresses: &Addresses| Ipv4Addr::from(addresses.first).octets()[1];
        let first = Addresses::claim(range, folder.path());
        let had = block(&first);
        drop(first);
        let again = Addresses::claim(range, folder.path());
        assert_eq!(block(&again), 40 + (had - 40 + 1) % 4, "the one after it");
        let others: Vec<Addresses> = (0..3)
            .map(|_| Addresses::claim(range, tempfile::tempdir().expect("a folder").path()))
            .collect();
        let mut blocks: Vec<u8> = others.iter().chain([&again]).map(block).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, [40, 41, 42, 43]);
        drop(others);
        let free = Addresses::claim(range, folder.path());
        assert_ne!(block(&free), block(&again));
    }
}
