//! Network files: hosts, switches and links of an emulated network.

mod file;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use deckwatch_testbed::{
    Emulation, Impairment, LOOPBACK, Layout, LayoutError, Link, LinkLayer, LinkSpec, NetworkSpec,
    Node, PRESETS, preset,
};
use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;

use crate::mission::fault::Faults;
use crate::mission::schema::generate;
use crate::mission::shape::{list, nearest};
use crate::mission::{DurationText, LoadError, read, shaped_table};

/// Reads a network file. A relay carries the frames of such a network.
///
/// # Errors
/// [`LoadError`], with all faults of the file that one reading finds.
pub fn load(path: &Path) -> Result<NetworkSpec, LoadError> {
    parse(path, read(path)?)
}

/// Reads the text of a network file; `path` stands in the faults.
///
/// # Errors
/// As [`load`].
pub fn parse(path: &Path, text: Arc<str>) -> Result<NetworkSpec, LoadError> {
    let malformed = |faults| LoadError::Malformed(Box::new(faults));
    let mut faults = Faults::new(path, text.clone());
    let table =
        shaped_table(&text, schema(), "the network file", &mut faults).map_err(malformed)?;
    let file = match file::File::deserialize(toml::de::Deserializer::from(table)) {
        Ok(file) => file,
        Err(error) => {
            let place = error.span().unwrap_or(0..0);
            let help = "see what `deckwatch schema network` prints";
            faults.report(place, error.message(), help);
            return Err(malformed(faults));
        }
    };
    let layout = layout(&file, &mut faults);
    faults.finish().map_err(malformed)?;
    if let Err(error) = layout.check() {
        report(&file, &error, &mut faults);
    }
    faults.finish().map_err(malformed)?;
    let slowest = layout.links.iter().map(|link| &link.spec);
    let slowest = slowest.min_by_key(|spec| spec.rate_bits_per_s);
    let slowest = slowest.unwrap_or_else(|| unreachable!("the schema asks for a link"));
    Ok(NetworkSpec {
        name: file.name.clone(),
        rate_bits_per_s: Some(slowest.rate_bits_per_s),
        mtu_bytes: layout.mtu_bytes(),
        burst_bytes: 0,
        queue_frames: slowest.queue_frames,
        link_layer: slowest.link_layer,
        emulation: Emulation::Relay,
        seed: file.seed.unwrap_or(1),
        layout: Some(layout),
    })
}

/// Makes the layout. If a name is wrong, it is reported, and the layout is incomplete.
fn layout(file: &file::File, faults: &mut Faults) -> Layout {
    let mut nodes = BTreeMap::new();
    let hosts = file.hosts.iter().zip((0..).map(Node::Host));
    let switches = file.switches.iter().zip((0..).map(Node::Switch));
    for (name, node) in hosts.chain(switches) {
        if nodes.insert(name.get_ref().as_str(), node).is_some() {
            let fact = format!("there is another host or switch named `{}`", name.get_ref());
            faults.report(name.span(), fact, "give each a name of its own");
        }
    }
    let links = file.links.iter().filter_map(|link| {
        let [one, other] = link.between.get_ref().as_slice() else {
            return None;
        };
        let [one, other] = [one, other].map(|name| node(name, &nodes, faults));
        Some(Link {
            spec: spec(link, faults),
            ends: [one?, other?],
        })
    });
    let links = links.collect();
    let names = |all: &[Spanned<String>]| all.iter().map(|one| one.get_ref().clone()).collect();
    Layout {
        hosts: names(&file.hosts),
        switches: names(&file.switches),
        links,
    }
}

fn node(name: &Spanned<String>, nodes: &BTreeMap<&str, Node>, faults: &mut Faults) -> Option<Node> {
    let wanted = name.get_ref().as_str();
    let found = nodes.get(wanted).copied();
    if found.is_none() {
        let help = match nearest(wanted, nodes.keys().copied()) {
            Some(near) => format!("write \"{near}\""),
            None => format!(
                "add it to `hosts` or `switches`, or name one of {}",
                list(nodes.keys())
            ),
        };
        let fact = format!("there is no host or switch named `{wanted}`");
        faults.report(name.span(), fact, help);
    }
    found
}

fn spec(link: &file::Link, faults: &mut Faults) -> LinkSpec {
    let named = link.preset.as_ref();
    if let Some(loopback) = named.filter(|name| name.get_ref() == LOOPBACK) {
        let help = "name an emulated network, or leave the key out";
        faults.report(loopback.span(), "loopback has no links", help);
    }
    // The schema check has already refused unknown names.
    let like = named
        .and_then(|name| preset(name.get_ref()).ok()?.link())
        .or_else(|| PRESETS[0].spec().link())
        .unwrap_or_else(|| unreachable!("the first network has links"));
    let ns = |text: Option<DurationText>, otherwise| {
        let ns = text.map(|text| u64::try_from(text.0.as_nanos()).unwrap_or(u64::MAX));
        ns.unwrap_or(otherwise)
    };
    let late_ns = if link.reorder.is_some() { 1_000_000 } else { 0 };
    LinkSpec {
        rate_bits_per_s: link
            .rate_mbit_s
            .map_or(like.rate_bits_per_s, |rate| (rate * 1e6).round() as u64),
        mtu_bytes: link.mtu_bytes.unwrap_or(like.mtu_bytes),
        link_layer: match link.framing {
            None => like.link_layer,
            Some(file::Framing::Ethernet) => LinkLayer::Ethernet,
            Some(file::Framing::Atm) => LinkLayer::Atm,
        },
        queue_frames: link.queue_frames.unwrap_or(like.queue_frames),
        impairment: Impairment {
            delay_ns: ns(link.delay, 0),
            jitter_ns: ns(link.jitter, 0),
            loss: link.loss.unwrap_or(0.0),
            duplicate: link.duplicate.unwrap_or(0.0),
            reorder: link.reorder.unwrap_or(0.0),
            reorder_delay_ns: ns(link.reorder_delay, late_ns),
        },
    }
}

/// Reports why links and nodes are no network, at their place.
fn report(file: &file::File, error: &LayoutError, faults: &mut Faults) {
    let link = |index: usize| file.links[index].between.span();
    let (place, fact, help) = match error {
        LayoutError::Loop { link: index } => (
            link(*index),
            "this link closes a loop".to_owned(),
            "remove it: a frame to all hosts would go round for ever".to_owned(),
        ),
        LayoutError::SecondLink { link: index, host } => (
            link(*index),
            format!("`{host}` has another link"),
            "give a host one link, and join networks by switches".to_owned(),
        ),
        LayoutError::Unreachable { node } => {
            let all = file.hosts.iter().chain(&file.switches);
            let place = all.clone().find(|name| name.get_ref() == node);
            (
                place.map_or(0..0, Spanned::span),
                format!("no link leads to `{node}`"),
                format!("add a link, for example: between = [\"{node}\", \"...\"]"),
            )
        }
        LayoutError::NoRate { link: index } | LayoutError::NoSuchNode { link: index } => {
            (link(*index), error.to_string(), "change it".to_owned())
        }
        _ => (0..0, error.to_string(), "change it".to_owned()),
    };
    faults.report(place, fact, help);
}

/// Returns the schema of a network file (JSON Schema 2020-12), which is published in `docs/schema/network-1.json`.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> =
        LazyLock::new(|| generate::<file::File>("network-1.json", "Deckwatch network"));
    &SCHEMA
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::schema::assert_published;

    const CHAIN: &str = "name = \"decks\"\nseed = 7\nhosts = [\"RTS\", \"SONAR\"]\nswitches = [\"bow\", \"stern\"]\n\
        [[links]]\nbetween = [\"RTS\", \"bow\"]\npreset = \"fast-ethernet\"\n\
        [[links]]\nbetween = [\"bow\", \"stern\"]\nrate_mbit_s = 2.5\nframing = \"atm\"\nmtu_bytes = 9180\n\
        queue_frames = 9\ndelay = \"2ms\"\njitter = \"500us\"\nloss = 0.01\nduplicate = 0.5\nreorder = 0.25\n\
        [[links]]\nbetween = [\"SONAR\", \"stern\"]\n";

    fn faults_of(text: &str) -> String {
        parse(Path::new("n.toml"), text.into())
            .expect_err("a fault")
            .to_string()
    }

    #[test]
    fn published_schema_is_current() {
        assert_published(schema(), "network");
    }

    #[test]
    fn each_key_of_a_link_is_in_its_place() {
        let network = parse(Path::new("n.toml"), CHAIN.into()).expect("a network");
        assert_eq!((network.emulation, network.seed), (Emulation::Relay, 7));
        assert_eq!(network.mtu_bytes, 1500);
        let layout = network.layout.expect("drawn");
        assert_eq!(
            layout.links[0].spec,
            preset("fast-ethernet").unwrap().link().unwrap()
        );
        let trunk = &layout.links[1];
        assert_eq!(trunk.ends, [Node::Switch(0), Node::Switch(1)]);
        let expected = LinkSpec {
            rate_bits_per_s: 2_500_000,
            mtu_bytes: 9180,
            link_layer: LinkLayer::Atm,
            queue_frames: 9,
            impairment: Impairment {
                delay_ns: 2_000_000,
                jitter_ns: 500_000,
                loss: 0.01,
                duplicate: 0.5,
                reorder: 0.25,
                reorder_delay_ns: 1_000_000,
            },
        };
        assert_eq!(trunk.spec, expected);
    }

    #[test]
    fn a_loop_an_unknown_node_and_a_rate_of_0_are_shown_where_they_are() {
        let looped = format!("{CHAIN}[[links]]\nbetween = [\"bow\", \"stern\"]\n");
        let said = faults_of(&looped);
        assert!(
            said.starts_with("n.toml:22:11: error: this link closes a loop"),
            "{said}"
        );
        let said = faults_of(&CHAIN.replace("[\"RTS\", \"bow\"]", "[\"RTS\", \"bov\"]"));
        assert!(
            said.starts_with("n.toml:6:19: error: there is no host or switch named `bov`"),
            "{said}"
        );
        assert!(said.contains("help: write \"bow\""), "{said}");
        let said = faults_of(&CHAIN.replace("= 2.5", "= 0"));
        assert!(
            said.starts_with("n.toml:10:15: error: `rate_mbit_s` must be a number from 0.001"),
            "{said}"
        );
    }

    #[test]
    fn a_node_apart_a_second_link_and_a_name_twice_are_shown_where_they_are() {
        let said =
            faults_of(&CHAIN.replace("\"SONAR\"]\nswitches", "\"SONAR\", \"MAST\"]\nswitches"));
        assert!(
            said.starts_with("n.toml:3:26: error: no link leads to `MAST`"),
            "{said}"
        );
        let twice = format!("{CHAIN}[[links]]\nbetween = [\"RTS\", \"stern\"]\n");
        assert!(faults_of(&twice).contains("error: `RTS` has another link"));
        let said = faults_of(&CHAIN.replace("\"stern\"]\n[[", "\"RTS\"]\n[["));
        assert!(
            said.contains("another host or switch named `RTS`"),
            "{said}"
        );
        let said = faults_of(&CHAIN.replace("\"fast-ethernet\"", "\"loopback\""));
        assert!(said.contains("loopback has no links"), "{said}");
    }
}
