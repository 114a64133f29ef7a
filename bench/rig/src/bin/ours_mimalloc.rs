//! Our informer in a program that has another allocator than the system's. What decodes many objects allocates much.

#[path = "ours.rs"]
mod ours;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ours::main()
}
