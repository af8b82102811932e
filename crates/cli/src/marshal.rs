//! `deckwatch marshal`: the cost of marshalling for each type.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_probe::experiment::{Marshal, marshal};
use deckwatch_probe::laboratory::ElementKind;

use crate::laboratory::{ExperimentOptions, Usual, Where};

/// Measure what marshalling costs, for each basic type and for structs, over sizes
#[derive(clap::Args)]
#[command(after_help = "\
The experiment of figures 7 to 9 of the submarine paper, beside raw TCP with as many octets, and omniORB if it is \
installed. Latency is a round trip with the sequence both ways. Throughput is a stream of one-ways, timed until the \
server has served the last.

Examples:
  deckwatch marshal
  deckwatch marshal --quick
  deckwatch marshal --types char,struct --size-max 1048576 --rounds 9
  deckwatch marshal --condition two-cores --json")]
pub(crate) struct Args {
    /// Element types: octet, char, wchar, boolean, short, ushort, long, ulong, longlong, ulonglong, float,
    /// double, string, enum, any, struct [default: all]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = kind)]
    types: Vec<Chosen>,
    /// Largest payload in octets [default: 65536]; payloads are the powers of two up to it
    #[arg(long, value_name = "OCTETS", value_parser = clap::value_parser!(u32).range(1..=8 << 20))]
    size_max: Option<u32>,
    #[command(flatten)]
    options: ExperimentOptions,
}

/// A value of `--types`.
#[derive(Clone, Copy)]
enum Chosen {
    All,
    One(ElementKind),
}

fn kind(word: &str) -> Result<Chosen, String> {
    if word == "all" {
        return Ok(Chosen::All);
    }
    let one = ElementKind::of_word(word).map(Chosen::One);
    one.ok_or_else(|| {
        let words: Vec<&str> = ElementKind::ALL.iter().map(|kind| kind.word()).collect();
        format!("write `all`, or one of {}", words.join(", "))
    })
}

const USUAL: Usual = Usual {
    rounds: 3,
    run_time: Duration::from_millis(30),
    quick_run_time: Duration::from_millis(10),
};

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let is_quick = args.options.common.is_quick();
    let size_max = args.size_max.unwrap_or(64 << 10) as usize;
    let step = if is_quick { 8 } else { 1 };
    let sizes = (0..=size_max.ilog2()).step_by(step).map(|power| 1 << power);
    let kinds = match (args.types.as_slice(), is_quick) {
        ([], false) => ElementKind::ALL.to_vec(),
        ([], true) => vec![
            ElementKind::Char,
            ElementKind::Long,
            ElementKind::Text,
            ElementKind::Struct,
        ],
        (chosen, _) => {
            let kinds = |chosen: &Chosen| match chosen {
                Chosen::All => ElementKind::ALL.to_vec(),
                Chosen::One(kind) => vec![*kind],
            };
            chosen.iter().flat_map(kinds).collect()
        }
    };
    let asked = Marshal {
        setup: args.options.common.setup(&USUAL)?,
        condition: args.options.condition(Where::Pinned),
        kinds,
        sizes: sizes.collect(),
    };
    let common = &args.options.common;
    common.carry_out("marshal", |tell, _| marshal(&asked, tell))
}
