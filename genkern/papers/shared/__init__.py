"""What the experiments share: their work in parts, pages, pictures of errors, machines, and choices of settings."""
