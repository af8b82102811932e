//! [`Layout`]: hosts and switches, the links between them, and the way of a frame from each switch to each host.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::link::LinkSpec;

/// The hosts and switches of a network, and the links between them. A layout is a tree: there is one way between any
/// two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The links.
    pub links: Vec<Link>,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The nodes that it joins.
    pub ends: [Node; 2],
    /// What it is.
    pub spec: LinkSpec,
}

/// A host or a switch, by its index in the [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// An index in [`Layout::hosts`].
    Host(usize),
    /// An index in [`Layout::switches`].
    Switch(usize),
}

/// Why a layout is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A link has no rate.
    #[error("Link {link} has rate 0: no frame would ever leave.")]
    NoRate {
        /// Index of the link.
        link: usize,
    },
    /// A link joins a node that does not exist.
    #[error("Link {link} leads to a node that does not exist.")]
    NoSuchNode {
        /// Index of the link.
        link: usize,
    },
    /// A link closes a loop, in which a frame to all would go round for ever.
    #[error("Link {link} closes a loop.")]
    Loop {
        /// Index of the link.
        link: usize,
    },
    /// A host has a second link.
    #[error("Link {link} is the second of host `{host}`; a host has one.")]
    SecondLink {
        /// Index of the link.
        link: usize,
        /// The host.
        host: String,
    },
    /// A node cannot be reached from the first host.
    #[error("No way of links leads from the first host to `{node}`.")]
    Unreachable {
        /// The host or switch.
        node: String,
    },
}

impl Layout {
    /// Returns one switch, with a link to each host.
    #[must_use]
    pub fn star(hosts: Vec<String>, spec: &LinkSpec) -> Self {
        let link = |host| Link {
            ends: [Node::Host(host), Node::Switch(0)],
            spec: spec.clone(),
        };
        Self {
            links: (0..hosts.len()).map(link).collect(),
            switches: vec!["switch".to_owned()],
            hosts,
        }
    }

    /// Checks that the layout is a tree in which every frame can leave.
    ///
    /// # Errors
    /// [`LayoutError`], the first fault in the order of the links.
    pub fn check(&self) -> Result<(), LayoutError> {
        let mut joined: Vec<usize> = (0..self.nodes()).collect();
        let root = |joined: &[usize], mut node: usize| {
            while joined[node] != node {
                node = joined[node];
            }
            node
        };
        let mut linked = vec![false; self.hosts.len()];
        for (index, link) in self.links.iter().enumerate() {
            if link.spec.rate_bits_per_s == 0 {
                return Err(LayoutError::NoRate { link: index });
            }
            for end in link.ends {
                match end {
                    Node::Host(host) if host < self.hosts.len() => {
                        if std::mem::replace(&mut linked[host], true) {
                            let host = self.hosts[host].clone();
                            return Err(LayoutError::SecondLink { link: index, host });
                        }
                    }
                    Node::Switch(switch) if switch < self.switches.len() => {}
                    _ => return Err(LayoutError::NoSuchNode { link: index }),
                }
            }
            let [one, other] = link.ends.map(|end| root(&joined, self.number(end)));
            if one == other {
                return Err(LayoutError::Loop { link: index });
            }
            joined[one] = other;
        }
        let first = root(&joined, 0);
        match (0..self.nodes()).find(|&node| root(&joined, node) != first) {
            None => Ok(()),
            Some(node) => Err(LayoutError::Unreachable {
                node: self.name(node).to_owned(),
            }),
        }
    }

    /// Returns the smallest MTU of all links: what every way carries whole.
    #[must_use]
    pub fn mtu_bytes(&self) -> u32 {
        let all = self.links.iter().map(|link| link.spec.mtu_bytes);
        all.min().unwrap_or(0)
    }

    /// Returns the link of a host. A checked layout of several nodes has one for each.
    #[must_use]
    pub fn link_of(&self, host: usize) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| link.ends.contains(&Node::Host(host)))
    }

    /// Returns each switch's way to each host: `ways[switch][host]` is the number of the line to send on. Line
    /// `2 * link` leads from the link's first end to its second, the next one back.
    pub(crate) fn ways(&self) -> Vec<Vec<Option<usize>>> {
        let mut ways = vec![vec![None; self.hosts.len()]; self.switches.len()];
        for host in 0..self.hosts.len() {
            let mut seen = vec![false; self.nodes()];
            let mut reached = VecDeque::from([Node::Host(host)]);
            seen[host] = true;
            while let Some(node) = reached.pop_front() {
                for (line, from) in self.lines_to(node) {
                    if std::mem::replace(&mut seen[self.number(from)], true) {
                        continue;
                    }
                    if let Node::Switch(switch) = from {
                        ways[switch][host] = Some(line);
                        reached.push_back(from);
                    }
                }
            }
        }
        ways
    }

    /// Returns the lines that lead to a node, and where each begins.
    fn lines_to(&self, node: Node) -> impl Iterator<Item = (usize, Node)> {
        self.links
            .iter()
            .enumerate()
            .flat_map(move |(index, link)| {
                let [first, second] = link.ends;
                let forth = (second == node).then_some((2 * index, first));
                let back = (first == node).then_some((2 * index + 1, second));
                forth.into_iter().chain(back)
            })
    }

    fn nodes(&self) -> usize {
        self.hosts.len() + self.switches.len()
    }

    fn number(&self, node: Node) -> usize {
        match node {
            Node::Host(host) => host,
            Node::Switch(switch) => self.hosts.len() + switch,
        }
    }

    fn name(&self, number: usize) -> &str {
        self.hosts
            .iter()
            .chain(&self.switches)
            .nth(number)
            .map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::preset;

    fn layout(links: &[[Node; 2]]) -> Layout {
        let spec = preset("fast-ethernet").unwrap().link().unwrap();
        let link = |&ends| Link {
            ends,
            spec: spec.clone(),
        };
        Layout {
            hosts: vec!["A".to_owned(), "B".to_owned()],
            switches: vec!["S".to_owned(), "T".to_owned(), "U".to_owned()],
            links: links.iter().map(link).collect(),
        }
    }

    const CHAIN: [[Node; 2]; 4] = [
        [Node::Host(0), Node::Switch(0)],
        [Node::Switch(0), Node::Switch(1)],
        [Node::Switch(2), Node::Switch(1)],
        [Node::Switch(2), Node::Host(1)],
    ];

    #[test]
    fn a_chain_of_switches_has_one_way_to_each_host() {
        let chain = layout(&CHAIN);
        chain.check().unwrap();
        let ways = chain.ways();
        assert_eq!(ways[0], [Some(1), Some(2)]);
        assert_eq!(ways[1], [Some(3), Some(5)]);
        assert_eq!(ways[2], [Some(4), Some(6)]);
    }

    #[test]
    fn a_loop_and_a_node_apart_are_refused() {
        let mut around = CHAIN.to_vec();
        around.push([Node::Switch(0), Node::Switch(2)]);
        let fault = layout(&around).check();
        assert_eq!(fault, Err(LayoutError::Loop { link: 4 }));
        let own = [[Node::Switch(1), Node::Switch(1)]];
        assert_eq!(layout(&own).check(), Err(LayoutError::Loop { link: 0 }));
        let apart = layout(&CHAIN[..3]).check();
        let node = "B".to_owned();
        assert_eq!(apart, Err(LayoutError::Unreachable { node }));
    }

    #[test]
    fn a_second_link_of_a_host_an_unknown_node_and_rate_0_are_refused() {
        let mut twice = CHAIN.to_vec();
        twice.push([Node::Host(0), Node::Switch(2)]);
        let host = "A".to_owned();
        let fault = layout(&twice).check();
        assert_eq!(fault, Err(LayoutError::SecondLink { link: 4, host }));
        let nowhere = layout(&[[Node::Host(0), Node::Switch(3)]]).check();
        assert_eq!(nowhere, Err(LayoutError::NoSuchNode { link: 0 }));
        let mut still = layout(&CHAIN);
        still.links[2].spec.rate_bits_per_s = 0;
        assert_eq!(still.check(), Err(LayoutError::NoRate { link: 2 }));
    }
}
