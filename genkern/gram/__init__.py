"""From kernels to matrices and features: blocks, workers, disk."""
