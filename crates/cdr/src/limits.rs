//! Every bound of this crate, with its reason.

/// Most octets one writer may produce unless told otherwise: 64 MiB, far above any mission message and far below
/// what would exhaust a small host. It bounds what an `Any` keeps too, which may be several times what came: where what follows is to stay aligned,
/// values that share a list of ids name each of them again, by an indirection.
///
/// While values of value types are passed over, each is remembered in 32 octets, of as few as four that came, and what an id means to which an
/// indirection leads, or a long list of them, in some 100 and 200, of as few as 16 and 80. So all of it takes at most some eight times what came.
pub const MESSAGE_SIZE_MAX: usize = 64 << 20;

/// How deep sequences of constructed values, Any values and TypeCodes may nest. IDL written by hand stays under 20; each
/// level costs a few hundred octets of stack, so that the deepest hostile value costs well under 64 KiB of it.
pub const NESTING_MAX: u8 = 64;

/// Octets by which a writer's window grows while a slice is written: large enough that growth is rare, small
/// enough that zeroing it is free beside the copy.
pub const WINDOW_STEP: usize = 1024;

/// Largest bound of a string kept inline. Longer bounded strings are `String`, checked when written and read.
pub const INLINE_STRING_MAX: usize = 255;

/// Most decimal digits of a `fixed` (CORBA 3.3 part 1, clause 7.11.3.4).
pub const FIXED_DIGITS_MAX: u16 = 31;

/// Most nodes of one TypeCode. The largest of the OMG's own interfaces has about two hundred.
pub const TYPE_CODE_NODES_MAX: usize = 4096;

/// Most members, cases and enumerators in one TypeCode altogether: several times the largest mission type seen.
pub const TYPE_CODE_MEMBERS_MAX: usize = 16384;

/// Most cases of a union in a TypeCode that a peer sends. Each value of it looks for its case among them, so that this is
/// what a hostile sequence of unions can cost an octet; unions written by hand stay under a hundred.
pub const UNION_CASES_MAX: usize = 1_024;

/// Longest path of types within types in one TypeCode, indirections followed; bounds the stack of the walks over it.
pub const TYPE_CODE_PATH_MAX: usize = 256;

/// Most parts of one [`crate::value::Value`], so that octets of a peer which stand for small parts cannot become many times their size in
/// memory: a million parts are some 50 MB, beside the octets and texts in them. What takes more than such a part counts as several: values of value
/// types without members, as many as may be, were measured to take 30 to 39 MB.
pub const VALUE_PARTS_MAX: usize = 1 << 20;

/// Parts that a value of a value type counts as besides its members: with an id of 63 letters it takes some 200 octets besides its place.
pub const INSTANCE_PARTS: usize = 4;

/// Parts that the state of such a value counts as where only its own code can read that.
pub const OPAQUE_PARTS: usize = 6;

/// Parts that an `any` counts as besides, and those of its type.
pub const ANY_PARTS: usize = 2;

/// Parts that a TypeCode counts as which a peer sent, besides what its names and nodes take: the smallest takes some 560 octets.
pub const TYPE_CODE_PARTS: usize = 12;

/// Octets of a repository id that count as one of these parts: on the wire values share it, in a tree each has its own. Each id of a base that a
/// value may be read as is a part besides.
pub const PART_ID_SIZE: usize = 64;

/// Most octets, padding included, of a value that is written and read within a window: structs of a dozen numbers and a short name. The window is
/// a little larger, and a message's last values are read without one where it would pass the end.
pub const WINDOW_VALUE_SIZE_MAX: usize = 120;

/// Values that room is made for at once where a sequence of small ones is written within windows: a few kilobytes, which stay in the processor's
/// nearest cache between being zeroed and being written.
pub const WINDOW_VALUES: usize = 32;

/// Most steps of a plan by which small values in a row are passed over: structs of a dozen numbers with as many texts between. Others are
/// walked over part by part.
pub const PLAN_STEPS_MAX: usize = 16;

/// Fewest values in a row that a plan is made for: to make one costs about as much as to walk over a few.
pub const PLAN_VALUES_MIN: usize = 8;

/// How deep structs, arrays and aliases may nest in such values.
pub const PLAN_DEPTH_MAX: u8 = 8;

/// Most bases above one another of a value type in a TypeCode that a peer sends: each of its values walks over them all. Hierarchies written by
/// hand stay under ten.
pub const VALUE_BASES_MAX: usize = 32;

/// Most repository ids that one value on the wire is said to have: its type and the bases it may be read as.
pub const VALUE_IDS_MAX: usize = 1 + VALUE_BASES_MAX;

/// Fewest ids of a list that values share for which it is remembered what values with it are: to look at fewer costs less than to remember more.
pub const SHARED_IDS_MIN: usize = 8;

/// Octets of a repository id on the wire that is too long to be looked for among the types that are known: many values may share one.
pub const VALUE_ID_SIZE_MAX: usize = 1024;

/// Most octets of values that stand in one [`crate::value::Value`] once more because they are shared: a few octets could else become any number.
pub const SHARED_SIZE_MAX: usize = 1 << 18;

/// Fewest octets at the end of a message that are left where they stand. To hand the kernel two places instead of one costs as much as copying
/// some 8 KiB; this is twice that.
pub const UNWRITTEN_SIZE_MIN: usize = 16 << 10;
