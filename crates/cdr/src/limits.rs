//! Every bound of this crate, with its reason.

/// Most octets one writer may produce unless told otherwise: 64 MiB, far above any mission message and far below what
/// would exhaust a small host. The limit holds for a kept `Any` too, which may take several times its octets on the
/// wire: to keep a state aligned, values that share a list of ids may repeat each id as an indirection.
///
/// A walk over values of value types remembers 32 octets for each value (on the wire at least 4), some 100 for each
/// shared id (at least 16) and some 200 for each long shared list (at least 80). In all, a walk takes at most about
/// eight times the octets of the message.
pub const MESSAGE_SIZE_MAX: usize = 64 << 20;

/// How deep sequences of constructed values, Any values and TypeCodes may nest. IDL written by hand stays under 20.
/// Each level costs a few hundred octets of stack: the deepest hostile value costs well under 64 KiB.
///
/// Share: each value, Any and TypeCode | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/bounds.rs::types_and_values_that_nest_too_deeply_are_refused
pub const NESTING_MAX: u8 = 64;

/// Octets by which a writer's window grows while a slice is written: large enough that growth is rare, small
/// enough that zeroing it is free beside the copy.
pub const WINDOW_STEP: usize = 1024;

/// Largest bound of a string kept inline. Longer bounded strings are `String`, checked when written and read.
pub const INLINE_STRING_MAX: usize = 255;

/// Most decimal digits of a `fixed` (CORBA 3.3 part 1, clause 7.11.3.4).
pub const FIXED_DIGITS_MAX: u16 = 31;

/// Most nodes of one TypeCode. The largest of the OMG's own interfaces has about two hundred.
///
/// Share: each TypeCode | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/bounds.rs::type_code_of_too_many_nodes_is_refused
pub const TYPE_CODE_NODES_MAX: usize = 4096;

/// Most members, cases and enumerators in one TypeCode altogether: several times the largest mission type seen.
///
/// Share: each TypeCode | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/bounds.rs::type_code_of_too_many_members_altogether_is_refused
pub const TYPE_CODE_MEMBERS_MAX: usize = 16384;

/// Most cases of a union in a TypeCode from a peer. Each value searches its case among them, so this bounds the cost of
/// an octet in a hostile sequence of unions. Unions written by hand stay under a hundred.
///
/// Share: each union | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/dynamic.rs::a_union_with_more_cases_than_a_value_may_search_is_refused
pub const UNION_CASES_MAX: usize = 1_024;

/// Longest path of types within types in one TypeCode, indirections followed. Bounds the stack of walks over the
/// TypeCode.
///
/// Share: each TypeCode | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/bounds.rs::type_code_with_too_long_a_path_is_refused
pub const TYPE_CODE_PATH_MAX: usize = 256;

/// Most parts of one [`crate::value::Value`]: small parts on the wire must not become many times their size in memory.
/// A million parts take some 50 MB, besides their octets and texts. Larger items count as several parts. Measured: the
/// most values of value types without members take 30 to 39 MB.
///
/// Share: each value | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/values.rs::what_takes_much_memory_is_many_parts_of_a_tree
pub const VALUE_PARTS_MAX: usize = 1 << 20;

/// Parts that a value of a value type counts as, besides its members: with an id of 63 letters it takes some 200 octets
/// besides its place.
pub const INSTANCE_PARTS: usize = 4;

/// Parts that an opaque state counts as.
pub const OPAQUE_PARTS: usize = 6;

/// Parts that an `any` counts as, besides those of its type.
pub const ANY_PARTS: usize = 2;

/// Parts that a TypeCode from a peer counts as, besides its names and nodes: the smallest takes some 560 octets.
pub const TYPE_CODE_PARTS: usize = 12;

/// Octets of a repository id that count as one part: values share an id on the wire, in a tree each has its own. Each
/// id of a base counts as one more part.
pub const PART_ID_SIZE: usize = 64;

/// Most octets, padding included, of a value that is written and read within a window: structs of a dozen numbers and a
/// short name. The window is a little larger. The last values of a message are read without a window where it would
/// pass the end.
pub const WINDOW_VALUE_SIZE_MAX: usize = 120;

/// Values for which room is made at once when a sequence of small values is written within windows: a few kilobytes,
/// which stay in the nearest cache between being zeroed and being written.
pub const WINDOW_VALUES: usize = 32;

/// Most steps of a plan for passing over small values in a row: structs of a dozen numbers with as many texts between.
/// Larger ones are walked over part by part.
pub const PLAN_STEPS_MAX: usize = 16;

/// Fewest values in a row for which a plan is made: making one costs about as much as walking over a few values.
pub const PLAN_VALUES_MIN: usize = 8;

/// How deep structs, arrays and aliases may nest in such values.
pub const PLAN_DEPTH_MAX: u8 = 8;

/// Most bases above one another of a value type in a TypeCode from a peer: each of its values walks over them all.
/// Hierarchies written by hand stay under ten.
///
/// Share: each value type | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/values.rs::bases_above_one_another_end_at_the_limit
pub const VALUE_BASES_MAX: usize = 32;

/// How deep values may nest in one another when they are read into handles or written from them: a linked list has at
/// most so many nodes behind one another. Each level costs up to a few kilobytes of stack.
///
/// Share: each value | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/bounds.rs::values_in_one_another_beyond_the_limit_are_refused
pub const VALUE_NESTING_MAX: u16 = 200;

/// Most texts and octet sequences of one message that stand in several chunks: each is joined in memory.
///
/// Share: each message | seen: IMP_LIMIT with the minor code of the fact | test:
/// crates/cdr/tests/bounds.rs::texts_in_several_chunks_beyond_the_limit_are_refused
pub const VALUE_JOINS_MAX: usize = 4_096;

/// Most repository ids of one value on the wire: its type and the bases that it may be read as.
pub const VALUE_IDS_MAX: usize = 1 + VALUE_BASES_MAX;

/// Fewest ids in a shared list for which the resolved type is remembered: looking at fewer costs less than remembering
/// more.
pub const SHARED_IDS_MIN: usize = 8;

/// Octets of a repository id on the wire that is too long to be searched for: many values may share one.
pub const VALUE_ID_SIZE_MAX: usize = 1024;

/// Most octets of shared values that are copied into one [`crate::value::Value`]: a few octets could otherwise become
/// any number.
pub const SHARED_SIZE_MAX: usize = 1 << 18;

/// Fewest octets at the end of a message that are written from where they stand. A second place costs the kernel as
/// much as copying some 8 KiB; this is twice that.
pub const UNWRITTEN_SIZE_MIN: usize = 16 << 10;
