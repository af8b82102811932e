//! Lists a context, alone or with all contexts below it.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::Context as _;
use deckwatch_naming::user::text;
use deckwatch_orb::cos_naming::{BindingType, NameComponent, NamingContextRef};
use deckwatch_orb::{ObjectRef, SystemException};
use deckwatch_text::escaped;

use super::At;
use super::bind::CONTEXTS_DEEP_MAX;
use super::bounds::{BoundArgs, Bounds};
use crate::exit::BAD_INPUT;
use crate::output::{errln, outln};

/// What is listed, and how.
#[derive(clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    at: At,
    /// The context; the root without it
    name: Option<String>,
    /// The contexts below it too
    #[arg(short, long)]
    recursive: bool,
    /// With the type and address of each reference
    #[arg(short, long)]
    long: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    bounds: BoundArgs,
}

/// A binding in the printed list.
#[derive(serde::Serialize)]
struct Row {
    name: String,
    context: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    type_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    /// The reason why the bindings of a context are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<String>,
}

pub(super) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let (place, _) = args.at.place_or_root(args.name.as_deref())?;
    let context = place.context()?;
    let mut listing = Listing {
        args,
        rows: Vec::new(),
        seen: HashSet::from([context.object().to_string()]),
        bounds: args.bounds.bounds(),
    };
    let what = if place.name.is_empty() {
        "the root"
    } else {
        &place.name
    };
    listing
        .add(&context, &mut Vec::new())
        .with_context(|| format!("cannot list {what}"))?;
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&listing.rows)?)?;
    } else {
        listing.rows.iter().try_for_each(Row::print)?;
    }
    Ok(match listing.bounds.cut() {
        Some(cut) => {
            errln!("The list is incomplete: {cut}.");
            BAD_INPUT.into()
        }
        None => ExitCode::SUCCESS,
    })
}

struct Listing<'a> {
    args: &'a ListArgs,
    rows: Vec<Row>,
    /// Contexts already listed: a context may contain itself.
    seen: HashSet<String>,
    bounds: Bounds,
}

impl Listing<'_> {
    fn add(
        &mut self,
        context: &NamingContextRef,
        path: &mut Vec<NameComponent>,
    ) -> Result<(), SystemException> {
        for binding in self.bounds.bindings(context)? {
            let is_context = binding.binding_type == BindingType::Ncontext;
            let depth = path.len();
            path.extend(binding.binding_name.iter().cloned());
            let looked_up = self.args.long || (self.args.recursive && is_context);
            let name = text(path);
            if !self.bounds.take_octets(name.len()) || !self.bounds.has_time() {
                break;
            }
            let object = if looked_up {
                let asked = self.bounds.limited(context.object());
                let asked = NamingContextRef::unchecked_narrow(asked);
                asked.resolve(&binding.binding_name).ok().flatten()
            } else {
                None
            };
            self.rows.push(Row {
                name,
                context: is_context,
                ..self.details(object.as_ref())
            });
            if let Some(object) = object.filter(|_| is_context && self.args.recursive) {
                self.descend(object, path);
            }
            path.truncate(depth);
        }
        Ok(())
    }

    fn descend(&mut self, object: ObjectRef, path: &mut Vec<NameComponent>) {
        let closed = if !self.seen.insert(object.to_string()) {
            Some("listed already".to_owned())
        } else if path.len() >= CONTEXTS_DEEP_MAX {
            Some("too deep".to_owned())
        } else {
            let row = self.rows.len() - 1;
            let listed = self.add(&NamingContextRef::unchecked_narrow(object), path);
            if let Err(error) = &listed {
                self.rows[row].closed = Some(error.to_string());
            }
            None
        };
        if let (Some(closed), Some(row)) = (closed, self.rows.last_mut()) {
            row.closed = Some(closed);
        }
    }

    fn details(&self, object: Option<&ObjectRef>) -> Row {
        let object = object.filter(|_| self.args.long);
        Row {
            name: String::new(),
            context: false,
            type_id: object.map(|object| object.type_id().to_owned()),
            address: object.and_then(address),
            reference: object.filter(|_| self.args.json).map(ToString::to_string),
            closed: None,
        }
    }
}

impl Row {
    fn print(&self) -> anyhow::Result<()> {
        let name = escaped(&self.name);
        let mut line = format!("{name}{}", if self.context { "/" } else { "" });
        for detail in [&self.type_id, &self.address].into_iter().flatten() {
            line.push_str("  ");
            let detail = if detail.is_empty() {
                "(no type)"
            } else {
                detail
            };
            line += &escaped(detail).to_string();
        }
        if let Some(closed) = &self.closed {
            line = format!("{line}  ({closed})");
        }
        outln!("{line}")
    }
}

/// Returns host and port of a reference's first IIOP profile. If that has only a unix socket, and so port 0, returns
/// host and path.
pub(crate) fn address(object: &ObjectRef) -> Option<String> {
    let profile = object.ior().iiop_profiles().flatten().next()?;
    let socket = profile.unix_addresses().next();
    Some(match socket.filter(|_| profile.port == 0) {
        Some((host, path)) => format!("{host}:{path}"),
        None => format!("{}:{}", profile.host, profile.port),
    })
}

/// Whether both contexts have the same address, and so belong to the same service.
pub(super) fn same_service(one: &NamingContextRef, other: &NamingContextRef) -> bool {
    let here = address(one.object());
    here.is_some() && here == address(other.object())
}
