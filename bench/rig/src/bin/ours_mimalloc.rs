//! This project's informer with mimalloc instead of the system allocator. Decoding many objects
//! allocates a lot.

#[path = "ours.rs"]
mod ours;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ours::main()
}
