//! The checks of where hosts are, and whether a network joins those that exchange messages.

use std::net::IpAddr;

use toml::Spanned;

use super::Checks;
use crate::mission::{Host, Location, file};
use crate::reach::{Reach, is_plain_word};

impl<'m> Checks<'m> {
    /// Returns where a host is: its `reach` and `address` decide.
    pub(super) fn location(&mut self, host: &'m file::Host) -> Location {
        let address = host.address.as_ref().and_then(|text| self.address(text));
        let program = host.program.as_ref().and_then(|text| self.program(text));
        let Some(reach) = &host.reach else {
            if let Some(program) = &host.program {
                let help = "remove it, or say how the host is reached: reach = [\"ssh\", \"HOST\"]";
                self.faults.report(
                    program.span(),
                    "`program` is for a host that has `reach`",
                    help,
                );
            }
            return address.map_or(Location::Emulated, |address| Location::Here { address });
        };
        for word in reach.get_ref() {
            let text = word.get_ref();
            if text.is_empty() || text.contains('\0') {
                let help =
                    "write the command and its arguments, one string each: [\"ssh\", \"HOST\"]";
                self.faults
                    .report(word.span(), "`reach` has an empty word", help);
            }
        }
        if host.address.is_none() {
            let help = "add the address at which the other hosts send to it, for example: address = \"10.0.0.1\"";
            self.faults
                .report(reach.span(), "`reach` needs `address`", help);
        }
        address.map_or(Location::Emulated, |address| {
            Location::Far(Reach {
                words: reach
                    .get_ref()
                    .iter()
                    .map(|word| word.get_ref().clone())
                    .collect(),
                address,
                program,
            })
        })
    }

    fn address(&mut self, text: &Spanned<String>) -> Option<IpAddr> {
        let fact = match text.get_ref().parse::<IpAddr>() {
            Ok(address) if address.is_unspecified() || address.is_multicast() => {
                "is not the address of one host"
            }
            Ok(address) => return Some(address),
            Err(_) => "is not an IP address",
        };
        let help =
            "write the host's own address, for example \"10.0.0.1\"; a name is not looked up";
        let fact = format!("`{}` {fact}", text.get_ref());
        self.faults.report(text.span(), fact, help);
        None
    }

    fn program(&mut self, text: &Spanned<String>) -> Option<String> {
        let path = text.get_ref();
        if is_plain_word(path) {
            return Some(path.clone());
        }
        let help = "use a path of letters and digits of ASCII, `/`, `.`, `_`, `-`, `+`, and begin with no `-`: a remote shell may read it";
        let fact = format!("`{path}` cannot be the path of the program");
        self.faults.report(text.span(), fact, help);
        None
    }

    /// Reports each flow whose ends no network joins: an emulated host is on the emulated network only.
    pub(super) fn joined_by_a_network(&mut self, hosts: &[Host]) {
        let file = self.file;
        let is_emulated = |name: &str| {
            let host = hosts.iter().find(|host| host.name == name);
            host.map(|host| host.location == Location::Emulated)
        };
        for flow in &file.flows {
            let from = flow.from.get_ref();
            for to in &flow.to {
                let (Some(near), Some(far)) = (is_emulated(from), is_emulated(to.get_ref())) else {
                    // A name that no host has is reported elsewhere.
                    continue;
                };
                if near == far {
                    continue;
                }
                let (emulated, real) = if near {
                    (from, to.get_ref())
                } else {
                    (to.get_ref(), from)
                };
                let fact =
                    format!("`{emulated}` is emulated and `{real}` is real: no network joins them");
                let help = format!(
                    "give {emulated} an `address` of this machine on the network of {real}, or a `reach` and an `address`"
                );
                self.faults.report(to.span(), fact, help);
            }
        }
    }
}
