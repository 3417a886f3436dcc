"""Feature maps: objects become vectors or models."""
