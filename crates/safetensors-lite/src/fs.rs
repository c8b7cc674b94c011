//! What touches files and streams: loading, frames out of a stream, sharded checkpoints, streamed and atomic
//! writing. All of it stands on the pure part of the crate; nothing here maps.

mod atomic;
mod error;
mod read;
mod shard_write;
mod shards;
mod stream;

pub use atomic::{save, save_atomic};
pub use error::{Error, ErrorKind};
pub use read::{load, load_header, read_next, read_prefix};
pub use shard_write::ShardPlan;
pub use shards::{Shard, ShardTensor, Shards};
pub use stream::Stream;
