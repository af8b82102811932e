//! `deckwatch call`: calls any operation of any object, with the types of an IDL file.

mod find;
mod sent;
mod show;
mod signature;
mod talk;
mod world;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use deckwatch_idl::Model;
use deckwatch_idl::notation::Notation;
use deckwatch_orb::Orb;

use crate::exit;
use crate::idl_args::IdlArgs;
use crate::mission_args::duration;
use crate::output::err;
use crate::tls::TlsArgs;
use signature::Signature;
pub(crate) use world::Surroundings;

/// Call any operation of any CORBA object
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch call \"$(cat echo.ior)\" echo_string 'hello there' --idl idl/deckwatch/echo.idl
  deckwatch call echo.ior echo_complex '{s: 1, l: -2, f: 0.5, d: 1e9, c: x, name: \"nav\"}' --idl idl/deckwatch/echo.idl
  deckwatch call corbaloc::localhost:2809/NameService resolve '[{id: ships, kind: \"\"}]' --idl idl/omg/CosNaming.idl
  deckwatch call echo.ior calls --idl idl/deckwatch/echo.idl                      read an attribute
  deckwatch call exchange.ior fee 12.5 --idl idl/deckwatch/asynchronous.idl       write one
  deckwatch call corbaloc:ssliop:ship:2810/NameService _non_existent --tls-authorities ship.pem  over TLS
  deckwatch call corbaname::localhost:2809#fleet/alpha.ship _non_existent         needs no IDL
  deckwatch call --list --idl idl/omg/CosNaming.idl                               what can be called
  deckwatch call echo.ior echo_any '{type: \"sequence<long>\", value: [1, 2]}' --idl idl/deckwatch/echo.idl --dry-run

Each `in` and `inout` parameter is one argument, in the order of the IDL. Results are printed by their names in the same form.
  numbers     42  -1  0x2a  1.5  -2e9  inf       text        \"in quotes\", 'so', or bare; JSON's escapes
  fixed       1.25  1.25d                        structs     {member: value, member: value}
  boolean     true  false                        unions      {case: label, value: member}  or  {member: value}
  enum        the enumerator                     sequences   [value, value]
  octets      x'00ff'  @FILE  [0, 255]           any         {type: \"IDL type\", value: ...}  or  null
  references  IOR:  corbaloc:  corbaname:  nil   TypeCode    an IDL type
An argument that begins with a minus and is no number stands in quotes of its own, '\"-x\"', or behind `--`. This command writes and reads no values of valuetypes.

Exit status: 0 returned, 1 a user exception was raised (printed with its members), 2 bad input or a system exception.")]
pub(crate) struct Args {
    /// IOR:, corbaloc: or corbaname:, a file that holds one, or `-` for standard input
    #[arg(required_unless_present = "list")]
    reference: Option<String>,
    /// The operation or attribute; `Interface::name` to say of which interface
    #[arg(required_unless_present = "list")]
    operation: Option<String>,
    /// Values of its parameters
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    idl: IdlArgs,
    /// Take the object to be of this interface, whatever its reference says
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// List what can be called, of the reference's interface or else of every one in the file
    #[arg(long)]
    list: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Wait so long for the reply
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// Wait so long for the connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    connect_timeout: Duration,
    /// Know this reference by a name, for `corbaloc:rir:/NAME` and `corbaname:rir:#...`
    #[arg(long, value_name = "NAME=REFERENCE")]
    init_ref: Vec<String>,
    /// Tell each message that is sent or received, and of each failure what was tried
    #[arg(long)]
    trace: bool,
    /// Show what would be sent, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    tls: TlsArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let model = match args.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let orb = orb(&args)?;
    let status = with(&args, &model, &orb);
    // Returns after the trace is written.
    orb.shutdown(true)?;
    status
}

fn orb(args: &Args) -> anyhow::Result<Orb> {
    let mut builder = args
        .tls
        .over(Orb::builder())?
        .connect_timeout(args.connect_timeout)
        .round_trip_timeout(args.timeout);
    for text in &args.init_ref {
        let (name, reference) = text
            .split_once('=')
            .context("`--init-ref` takes NAME=REFERENCE")?;
        builder = builder.initial_reference(name, reference);
    }
    if args.trace {
        builder = builder.trace(std::io::stderr());
    }
    Ok(builder.build()?)
}

fn with(args: &Args, model: &Model, orb: &Orb) -> anyhow::Result<ExitCode> {
    let world = Surroundings { orb };
    let notation = Notation::new(model, &world);
    if args.list {
        return show::list(&notation, orb, args);
    }
    let (Some(reference), Some(operation)) = (&args.reference, &args.operation) else {
        bail!("a reference and an operation are needed")
    };
    let target = crate::reference::target(orb, reference)?;
    let signature = match Signature::of_every_object(operation) {
        Some(signature) => signature,
        None if args.idl.idl.is_none() => {
            bail!("`--idl FILE` is needed: the file that has the interface of `{operation}`")
        }
        None => {
            let found = find::operation(model, args, operation, &target)?;
            Signature::of(&notation, found)?
        }
    };
    let values = match signature.read(&notation, &args.arguments) {
        Ok(values) => values,
        Err(message) => {
            err!("{message}");
            return Ok(exit::BAD_INPUT.into());
        }
    };
    if args.dry_run {
        sent::show(&notation, &target, &signature, &values)?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = talk::call(&target, &signature, &values);
    show::outcome(&notation, &signature, outcome, args.json)
        .with_context(|| format!("cannot call {}", signature.name))
}
